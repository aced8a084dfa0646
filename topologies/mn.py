"""Mininet's entry: ``sudo mn --custom topologies/mn.py --topo torus,4,4 --controller remote``.

Every family of the registry is a topology here, with the port numbers, dpids, MACs and IPs of
our fabrics, so that the controller's rules fit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mininet.topo import Topo


def _here() -> None:
    """Only its code object is used: Mininet exec()s this file, so there is no __file__."""


_REPOSITORY = str(Path(_here.__code__.co_filename).resolve().parent.parent)
if _REPOSITORY not in sys.path:
    sys.path.insert(0, _REPOSITORY)

from common.errors import KnotlessError  # noqa: E402 - needs the path set above
from topologies.fabric import Fabric  # noqa: E402 - likewise
from topologies.registry import families  # noqa: E402 - likewise
from topologies.spec import build  # noqa: E402 - likewise


class FabricTopo(Topo):  # type: ignore[misc] # Mininet has no types
    """A fabric as Mininet describes one."""

    def build(self, fabric: Fabric) -> None:
        """Add the fabric's switches, hosts and links, with their ports."""
        for switch in fabric.switches:
            self.addSwitch(switch.name, dpid=f"{switch.dpid:016x}", protocols="OpenFlow13")
        for host in fabric.hosts:
            self.addHost(host.name, mac=host.mac, ip=f"{host.ip}/8")
            self.addLink(host.name, host.switch, port1=0, port2=host.port)
        for link in fabric.links:
            self.addLink(link.a, link.b, port1=link.a_port, port2=link.b_port)


def make_topo(family: str, *sizes: object, **options: object) -> FabricTopo:
    """Return the topology of a spec that Mininet has taken apart; end with one line if bad."""
    spec = ",".join([family, *map(str, sizes), *(f"{k}={v}" for k, v in options.items())])
    try:
        return FabricTopo(build(spec))
    except KnotlessError as error:
        sys.stderr.write(f"knotless: {error}\n")
        sys.exit(2)


topos: dict[str, Callable[..., FabricTopo]] = {
    name: partial(make_topo, name) for name in families()
}
