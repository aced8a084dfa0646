"""The kind of each interface of a router, from the tables of its device.

An interface is a port, a LAG of ports, a bridge or VLAN, or leads to the device itself: a loopback,
the management port. Its name alone says nothing: it is evidence only where the system fixes it, as
Linux fixes that of its loopback device and SONiC those of its management port, loopbacks and VLANs.
What a port leads to is found in :mod:`.cables`.

References
----------
Linux, ``drivers/net/loopback.c`` (``lo``). SONiC: ``fpmsyncd/routesync.cpp`` (no route by ``eth0``
or ``docker0`` reaches the switch chip); the YANG models sonic-vlan (``Vlan[0-9]+``) and
sonic-loopback-interface (``Loopback[0-9]+``), and sonic-port: PORT lists all ports of the chip; the
design of sub port interfaces, 2.1.1 (``Eth4.10`` is one of Ethernet4, ``Po1.10`` of PortChannel1).

"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from knotless.importers.routers.router import INTERFACE_TABLES, Router, natural

_SONIC = ("DEVICE_METADATA", "ROUTE_TABLE")
"""Tables that no other system has."""
_SONIC_MANAGEMENT = ("eth0", "docker0")
_SONIC_LOOPBACK = re.compile(r"Loopback[0-9]+")
_SONIC_VLAN = re.compile(r"Vlan[0-9]+")
_SONIC_SHORT = {"Eth": "Ethernet", "Po": "PortChannel"}
_SHORT_NAME = re.compile(r"(Eth|Po)([0-9]+)")
_LOOPBACK_DEVICE = "lo"
_LAGS = (("PORTCHANNEL_MEMBER", "|"), ("LAG_MEMBER_TABLE", ":"))


def addresses_of(router: Router) -> Iterator[tuple[str, str]]:
    """Yield the interfaces of CONFIG_DB with an address of each, as text."""
    for table in (*INTERFACE_TABLES, "LOOPBACK_INTERFACE"):
        for key in router.table(table):
            interface, bar, address = key.partition("|")
            if bar and "/" in address:
                yield interface, address


class DeviceInterfaces:
    """The interfaces of one router."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.is_sonic = any(router.table(table) for table in _SONIC)
        lags: dict[str, set[str]] = {}
        for table, mark in _LAGS:
            for key in router.table(table):
                lag, _, port = key.partition(mark)
                lags.setdefault(lag, set()).add(port)
        self.lags = {lag: tuple(sorted(ports, key=natural)) for lag, ports in lags.items()}
        """The ports of each LAG. On Linux, the port of a VLAN device too."""

    def base(self, interface: str) -> str:
        """Return the port or LAG of a sub-interface, which is written with a dot; else the same."""
        base, dot, _ = interface.partition(".")
        short = _SHORT_NAME.fullmatch(base) if dot and self.is_sonic else None
        return f"{_SONIC_SHORT[short[1]]}{short[2]}" if short else base

    @cached_property
    def bridges(self) -> frozenset[str]:
        """The bridges and VLANs, of which the members are ports."""
        tables = ("BRIDGE", "BRIDGE_MEMBER", "VLAN", "VLAN_MEMBER", "VLAN_INTERFACE")
        return frozenset(
            key.partition("|")[0] for name in tables for key in self.router.table(name)
        )

    def is_bridge(self, interface: str) -> bool:
        """Tell whether an interface is a bridge or a VLAN."""
        base = self.base(interface)
        return base in self.bridges or (self.is_sonic and bool(_SONIC_VLAN.fullmatch(base)))

    def ports(self, interface: str) -> tuple[str, ...]:
        """Return the physical ports of an interface: of a LAG its members, of a VLAN none."""
        base = self.base(interface)
        return self.lags.get(base, () if self.is_bridge(base) else (base,))

    def is_loopback(self, interface: str) -> bool:
        """Tell whether an interface is a loopback of the router."""
        base = self.base(interface)
        return (
            base == _LOOPBACK_DEVICE
            or base in self._loopbacks
            or (self.is_sonic and bool(_SONIC_LOOPBACK.fullmatch(base)))
        )

    def own(self, interface: str, *, routed: bool) -> str:
        """Return why an interface leads to the device itself or its management network, or ''.

        By an interface that is ``routed``, a route leads to a next hop.
        """
        base = self.base(interface)
        if base == _LOOPBACK_DEVICE:
            return "it is the loopback device of Linux"
        if self.is_loopback(base):
            return "it is a loopback interface (LOOPBACK_INTERFACE)"
        if base in self._management:
            return "it is a management interface (MGMT_INTERFACE)"
        if self.is_sonic and base in _SONIC_MANAGEMENT:
            return f"SONiC does not forward by {base}"
        ports = self.router.table("PORT") if self.is_sonic and not routed else {}
        if (
            ports
            and not any(port in ports for port in self.ports(base))
            and not self.is_bridge(base)
        ):
            return "it is none of the ports in PORT"
        return ""

    @cached_property
    def _loopbacks(self) -> frozenset[str]:
        return self._named_in("LOOPBACK_INTERFACE")

    @cached_property
    def _management(self) -> frozenset[str]:
        return self._named_in("MGMT_INTERFACE", "MGMT_PORT")

    def _named_in(self, *tables: str) -> frozenset[str]:
        """Return the interfaces that keys of tables begin with."""
        return frozenset(
            key.partition("|")[0] for table in tables for key in self.router.table(table)
        )

    def addresses(self) -> Iterator[tuple[str, ipaddress.IPv4Interface | ipaddress.IPv6Interface]]:
        """Yield the addresses of the router, each with its interface; none that is link-local."""
        configured = self.router.configuration
        texts = [*addresses_of(self.router)]
        # Of INTF_TABLE the key of an IPv6 address has more colons.
        texts += [
            (interface, address)
            for interface, _, address in (
                key.partition(":") for key in self.router.table("INTF_TABLE")
            )
        ]
        texts += configured.addresses if configured is not None else ()
        for interface, text in dict.fromkeys(texts):
            try:
                address = ipaddress.ip_interface(text)
            except ValueError:
                continue  # a key without an address, or a reader's finding
            if not address.ip.is_link_local:
                yield interface, address

    @cached_property
    def networks(self) -> dict[str, list[ipaddress.IPv4Network | ipaddress.IPv6Network]]:
        """The networks of each interface with addresses."""
        networks: dict[str, list[ipaddress.IPv4Network | ipaddress.IPv6Network]] = {}
        for interface, address in self.addresses():
            networks.setdefault(interface, []).append(address.network)
        return networks


class Interfaces:
    """The interfaces of all routers, by the name of the router and of the interface."""

    def __init__(self, routers: Sequence[Router]) -> None:
        self._devices = {router.name: DeviceInterfaces(router) for router in routers}
        self._owners: dict[str, set[str]] = {}
        for name, device in self._devices.items():
            for _, address in device.addresses():
                self._owners.setdefault(str(address.ip), set()).add(name)

    def __getitem__(self, router: str) -> DeviceInterfaces:
        """Return the interfaces of a router; of one without files nothing is known."""
        return self._devices.get(router) or DeviceInterfaces(Router(router, router))

    def owners(self, address: str) -> set[str]:
        """Return the names of the routers that have an address."""
        return self._owners.get(address, set())
