"""A host: a network namespace with one interface, whose sending the emulator can hold back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Any

from common.errors import EmulationError
from emulation import namespaces
from emulation.mn import Host
from emulation.names import MARK, Names
from emulation.wiring import NFQUEUE
from topologies import fabric as description

_QUIETEN = """set -e
interface=$1 queue=$2
for which in all default; do
    setting=/proc/sys/net/ipv6/conf/$which/disable_ipv6
    [ ! -e "$setting" ] || echo 1 > "$setting"
done
ethtool -K "$interface" tx off tso off gso off gro off rxvlan off txvlan off
[ -z "$queue" ] || exec iptables -w -A OUTPUT ! -o lo -j NFQUEUE --queue-num "$queue"
"""
"""Values come as arguments, never as text of the script: a fabric file is not to be trusted."""


class EmulatedHost(Host):  # type: ignore[misc]  # Mininet is not typed
    """A Mininet host in a namespace of its own, which is also called ``kn-FABRIC.HOST``.

    ``popen``, ``cmd`` and the prompt work as in Mininet. Everything started here carries
    the fabric's mark, so that it is found and ended with the fabric.
    """

    def __init__(
        self, name: str, *, names: Names, host: description.Host, prefix: int = 8, **params: Any
    ) -> None:
        self._names = names
        self.description = host
        self._prefix = prefix
        super().__init__(name, ip=f"{host.ip}/{prefix}", **params)
        # A host's own mount namespace shows the names of the others' network namespaces
        # but not these themselves, of which every `ip` in a host would complain.
        self.cmd("mount -t tmpfs tmpfs /run/netns")

    def _popen(self, cmd: list[str], **params: Any) -> subprocess.Popen[bytes]:
        environment = params.pop("env", None) or os.environ
        process: subprocess.Popen[bytes] = super()._popen(
            cmd, env={**environment, MARK: self._names.name}, **params
        )
        return process

    @property
    def namespace(self) -> str:
        """The name of this host's network namespace."""
        return self._names.host_namespace(self.name)

    def configure(
        self, interface: str, *, held: bool, known: Sequence[description.Host] = ()
    ) -> None:
        """Set up offloads and addresses and open the interface.

        No offloads: the emulator's trailer goes behind the frame, so checksums must be
        final and frames no longer than the wire's. ``held`` puts outgoing IP packets into
        the queue that the emulator lets go (NFQUEUE), so that a sender blocks as with a
        paused network card instead of losing packets. The addresses of ``known`` hosts
        are entered for good, so that they need no ARP.
        """
        done = subprocess.run(
            namespaces.enter(
                self.namespace,
                ["sh", "-c", _QUIETEN, "sh", interface, str(NFQUEUE) if held else ""],
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            complaint = " ".join((done.stderr or done.stdout).split())[:300]
            raise EmulationError(f"{self.name}: cannot be configured: {complaint}")
        own = self.description
        neighbours = (
            f"neigh replace {host.ip} lladdr {host.mac} dev {interface} nud permanent"
            for host in known
            if host.name != own.name
        )
        namespaces.ip_batch(
            [
                "link set lo up",
                f"address add {own.ip}/{self._prefix} brd + dev {interface}",
                f"link set {interface} up",
                # The kernel makes no route of its own for a prefix that is everything.
                *([] if self._prefix else [f"route add default dev {interface} src {own.ip}"]),
                *neighbours,
            ],
            namespace=self.namespace,
        )

    def told(self, interface: Any) -> None:
        """Let Mininet know the addresses that :meth:`configure` has set."""
        interface.ip, interface.prefixLen = self.description.ip, str(self._prefix)
        interface.mac = self.description.mac
