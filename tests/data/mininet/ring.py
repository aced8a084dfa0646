"""A ring of switches for ``mn --custom``, on which shortest paths can deadlock."""

from mininet.topo import Topo


class RingTopo(Topo):
    """Switches in a circle, each with a host."""

    def build(self, n=4):
        switches = [self.addSwitch(f"s{i + 1}") for i in range(n)]
        for i, switch in enumerate(switches):
            self.addLink(self.addHost(f"h{i + 1}"), switch)
        for i, switch in enumerate(switches):
            self.addLink(switch, switches[(i + 1) % n], port1=2, port2=3)


topos = {"myring": RingTopo}
