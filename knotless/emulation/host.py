"""Hosts: a network namespace with one interface; the emulator can hold back its packets."""

from __future__ import annotations

import ipaddress
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from knotless.emulation import namespaces
from knotless.emulation.described_node import DescribedNode
from knotless.emulation.mn import Host, with_own_mark
from knotless.emulation.names import Names
from knotless.emulation.priority import VARIABLE, Part, Priority, prioritise, start_program
from knotless.emulation.wiring import NFQUEUE
from knotless.topologies import fabric as description

TCP_RTO_MS = 200
"""Linux's least time until TCP retransmits (TCP_RTO_MIN)."""

_CONFIGURE = """
interface=$1 queue=$2
ethtool -K "$interface" tx off tso off gso off gro off rxvlan off txvlan off
[ -n "$queue" ] || exit 0
hold() { "$1" -w -A "$2" -o "$interface+" -j NFQUEUE --queue-num "$queue"; }
hold iptables OUTPUT
hold iptables FORWARD
[ -e /proc/sys/net/ipv6 ] || exit 0
hold ip6tables OUTPUT
hold ip6tables FORWARD
"""


class EmulatedHost(DescribedNode, Host):  # type: ignore[misc]  # Mininet is not typed
    """A Mininet host in its own network namespace, which is also called ``kn-FABRIC.HOST``.

    ``popen``, ``cmd`` and the prompt work as in Mininet once it runs. Processes started here get
    ``environment`` (:func:`knotless.emulation.virtual_clock.program_environment`).
    """

    def begin(
        self,
        *,
        names: Names,
        host: description.Host,
        prefix: int = 8,
        environment: Mapping[str, str],
    ) -> None:
        """Create the namespace, and start the shell in it."""
        self._names = names
        self._environment = environment
        self.description = host
        self._prefix = prefix
        directories = {"privateDirs": self.params.get("privateDirs", [])}
        Host.__init__(self, self.name, ip=f"{host.ip}/{prefix}", **directories)
        # In a host's mount namespace the names of other network namespaces are visible, but not
        # the namespaces, so every `ip` command would print warnings.
        self.cmd("mount -t tmpfs tmpfs /run/netns")
        prioritise(Part.HOST, self._priority, self.pid or 0)  # now the shell leads a session

    def IP(self, intf: Any = None) -> Any:  # noqa: N802 - Mininet's name
        """Return the IP address; before the host runs, the one that it will have."""
        return self.params["ip"].partition("/")[0] if self.shell is None else super().IP(intf)

    def MAC(self, intf: Any = None) -> Any:  # noqa: N802 - Mininet's name
        """Return the MAC address; before the host runs, the one that was chosen, or None."""
        return self.params.get("mac") if self.shell is None else super().MAC(intf)

    def setIP(  # noqa: N802 - Mininet's name
        self,
        ip: str,
        prefixLen: int = 8,  # noqa: N803 - likewise
        intf: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Set the IP address, now or before the host runs."""
        if self.shell is not None:
            return super().setIP(ip, prefixLen, intf, **kwargs)
        self.params["ip"] = ip if "/" in ip else f"{ip}/{prefixLen}"
        return None

    def setMAC(self, mac: str, intf: Any = None) -> Any:  # noqa: N802 - Mininet's name
        """Set the MAC address, now or before the host runs."""
        if self.shell is not None:
            return super().setMAC(mac, intf)
        self.params["mac"] = mac
        return None

    def _popen(self, cmd: list[str], **params: Any) -> subprocess.Popen[bytes]:
        environment = params.pop("env", None) or os.environ
        own = {**environment, **self._environment}
        begin = partial(super()._popen, with_own_mark(cmd), env=own, **params)
        return start_program(Part.HOST, self._priority, begin)

    @property
    def _priority(self) -> Priority:
        return Priority(self._environment.get(VARIABLE, Priority.NORMAL))

    @property
    def namespace(self) -> str:
        """The name of this host's network namespace."""
        return self._names.host_namespace(self.name)

    def configure(
        self,
        interface: str,
        *,
        held: bool,
        arp_hosts: Sequence[description.Host] = (),
        slow_down: float = 1.0,
    ) -> None:
        """Set up offloads and addresses and open the interface.

        Offloads are off: the emulator appends a trailer to each frame, so checksums must be
        final and frames no longer than on the wire. ``held`` sends outgoing IP packets, also those
        that the host forwards for others, through the queue that the emulator releases (NFQUEUE),
        so that a sender blocks, as with a paused network card, instead of losing packets.
        ``arp_hosts`` get permanent ARP entries. TCP retransmits after 200 ms at the earliest, times
        ``slow_down``.
        """
        script = namespaces.NO_IPV6 + _CONFIGURE
        namespaces.run_script(self.namespace, script, interface, str(NFQUEUE) if held else "")
        own = self.description
        network = ipaddress.ip_interface(f"{own.ip}/{self._prefix}").network
        rto_ms = round(TCP_RTO_MS * slow_down)
        neighbours = (
            f"neigh replace {host.ip} lladdr {host.mac} dev {interface} nud permanent"
            for host in arp_hosts
            if host.name != own.name
        )
        namespaces.ip_batch(
            [
                "link set lo up",
                f"address add {own.ip}/{self._prefix} brd + dev {interface}",
                f"link set {interface} up",
                # In place of the kernel's own route, which has no rto_min. For an empty prefix the
                # kernel adds none.
                f"route replace {network} dev {interface} src {own.ip} rto_min {rto_ms}ms",
                *neighbours,
            ],
            namespace=self.namespace,
        )

    def tell_mininet(self, interface: Any) -> None:
        """Give Mininet the addresses that :meth:`configure` has set."""
        interface.ip, interface.prefixLen = self.description.ip, str(self._prefix)
        interface.mac = self.description.mac
