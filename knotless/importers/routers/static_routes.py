"""Static routes by which routers stop using some next hops: patches for SONiC, lines for FRR.

A static route is preferred to what routing protocols say about the same prefix, and BGP goes on
announcing its own route, so that no other router changes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from knotless.importers.fabric import PortsGone
from knotless.importers.route_dump import NextHop
from knotless.importers.routers.cables import Routes
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.routers.router import Router
from knotless.importers.routers.routes import Addresses
from knotless.importers.sonic.patch import SwitchPatch

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*")
"""An address or the name of an interface. Anything else could be a command of its own."""


@dataclass(frozen=True)
class RoutesRead:
    """The routes of all routers as they were read, in the order of their numbers.

    ``names`` are those of the switches in the fabric, which are fit for files.
    """

    routers: Sequence[Router]
    names: Sequence[str]
    routes: Mapping[str, Routes]
    interfaces: Interfaces
    addresses: Addresses

    def without(self, unused: PortsGone) -> dict[str, str] | None:
        """Return files of static routes by name; None if some of them cannot be written.

        A file is a patch of CONFIG_DB (``NAME.json``), or lines for ``vtysh`` (``NAME.conf``).
        """
        by_router: dict[int, dict[str, tuple[NextHop, ...]]] = {}
        for (router, destination), ports in sorted(unused.items()):
            prefixes = self.addresses.prefixes(destination)
            if not prefixes or not _has_one_table(self.routers[router]):
                return None
            for prefix in prefixes:
                hops = self._left(router, prefix, ports)
                if hops is None:
                    return None
                by_router.setdefault(router, {})[prefix] = hops
        files = {}
        for router, routes in by_router.items():
            ending, text = _file(self.routers[router], routes)
            files[f"{self.names[router]}.{ending}"] = text
        return files

    def _left(
        self, router: int, prefix: str, unused: AbstractSet[str]
    ) -> tuple[NextHop, ...] | None:
        """Return the next hops that are left.

        None for a LAG of which some ports are gone, and for names that are more than one word.
        """
        name = self.routers[router].name
        kept_hops = []
        for hop in _longest(self.routes[name], prefix):
            ports = {*self.interfaces[name].ports(hop.interface)} if hop.interface else set()
            if ports & unused and ports - unused:
                return None
            if not ports & unused:
                if not all(_WORD.fullmatch(word) for word in (hop.address, hop.interface) if word):
                    return None
                kept_hops.append(hop)
        return tuple(kept_hops)


def _has_one_table(router: Router) -> bool:
    """Tell whether a router is a whole device, not one of its VRFs or chips."""
    return router.name == router.host


def _longest(routes: Routes, prefix: str) -> tuple[NextHop, ...]:
    network = ipaddress.ip_network(prefix)
    for length in range(network.prefixlen, -1, -1):
        hops = routes.get(str(network.supernet(new_prefix=length)))
        if hops is not None:
            return hops
    return ()


def _file(router: Router, routes: Mapping[str, Sequence[NextHop]]) -> tuple[str, str]:
    """Return the ending of a file's name, and its text."""
    if not router.table("DEVICE_METADATA"):
        lines = [line for prefix, hops in routes.items() for line in _lines(prefix, hops)]
        return "conf", "\n".join(lines) + "\n"
    patch = SwitchPatch(router.tables)
    for prefix, hops in routes.items():
        fields = {
            "nexthop": ",".join(hop.address or _any(prefix) for hop in hops),
            "ifname": ",".join(hop.interface or "" for hop in hops),
        }
        patch.put("STATIC_ROUTE", f"default|{prefix}", fields if hops else {"blackhole": "true"})
    return "json", patch.text


def _lines(prefix: str, hops: Sequence[NextHop]) -> Iterator[str]:
    command = f"{'ipv6' if ':' in prefix else 'ip'} route {prefix}"
    for hop in hops:
        yield " ".join([command, *([hop.address] if hop.address else []), hop.interface or ""])
    if not hops:
        yield f"{command} blackhole"


def _any(prefix: str) -> str:
    """Return the address that stands for a next hop without one."""
    return "::" if ":" in prefix else "0.0.0.0"  # noqa: S104 - no address that is bound to
