"""A topology of one's own, with rates and delays, as in Mininet's walkthrough."""

from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.topo import Topo
from mininet.util import dumpNodeConnections


class TriangleTopo(Topo):
    """Three switches, each with a host and linked to both others."""

    def build(self, bw=10):
        switches = [self.addSwitch(f"s{i}") for i in (1, 2, 3)]
        for i, switch in enumerate(switches, 1):
            host = self.addHost(f"h{i}")
            self.addLink(host, switch, bw=bw, delay="1ms", loss=0, max_queue_size=1000)
        self.addLink(switches[0], switches[1], bw=2 * bw, delay="2ms")
        self.addLink(switches[1], switches[2], bw=2 * bw, delay="2ms")
        self.addLink(switches[2], switches[0], bw=2 * bw, delay="2ms")


def perf_test():
    net = Mininet(topo=TriangleTopo(), link=TCLink)
    net.start()
    print("Dumping host connections")
    dumpNodeConnections(net.hosts)
    print("lost", net.pingAll())
    h1, h3 = net.get("h1", "h3")
    print(h1.cmd("ping -c 3 -i 0.2", h3.IP()))
    net.stop()


if __name__ == "__main__":
    setLogLevel("info")
    perf_test()
