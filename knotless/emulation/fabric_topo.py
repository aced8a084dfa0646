"""A fabric as a topology of Mininet.

This module imports only Mininet and the topologies, because it also runs in Mininet's Python
interpreter (``topologies/mn.py``).
"""

from __future__ import annotations

import logging

from mininet.topo import Topo

from knotless.topologies.fabric import Fabric

logging.setLoggerClass(logging.Logger)  # see knotless.emulation.mn


class FabricTopo(Topo):  # type: ignore[misc] # Mininet has no types
    """A fabric as a Mininet topology: with its ports, dpids, MACs and IPs.

    ``with_lines`` adds the rates and delays of its links.
    """

    def build(self, fabric: Fabric, with_lines: bool = False) -> None:
        """Add the fabric's switches, hosts and links, with their ports."""
        self.fabric = fabric

        def line(rate_mbps: float, delay_us: float) -> dict[str, object]:
            return {"bw": rate_mbps, "delay": f"{delay_us:.12g}us"} if with_lines else {}

        for switch in fabric.switches:
            self.addSwitch(switch.name, dpid=f"{switch.dpid:016x}", protocols="OpenFlow13")
        for host in fabric.hosts:
            self.addHost(host.name, mac=host.mac, ip=f"{host.ip}/8")
            own = line(host.rate_mbps, host.delay_us)
            self.addLink(host.name, host.switch, port1=0, port2=host.port, **own)
        for link in fabric.links:
            own = line(link.rate_mbps, link.delay_us)
            self.addLink(link.a, link.b, port1=link.a_port, port2=link.b_port, **own)
