"""A tree whose throughput is measured, before and after a link has gone down."""

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.topolib import TreeTopo

setLogLevel("output")
net = Mininet(topo=TreeTopo(depth=2, fanout=2), autoSetMacs=True)
net.start()
h1, h2, h4 = net.get("h1", "h2", "h4")
rates = net.iperf((h1, h4), seconds=2)
print("rates", len(rates))
net.configLinkStatus("s1", "s3", "down")
print("lost", net.pingAll(timeout="1"))
net.configLinkStatus("s1", "s3", "up")
print("lost", net.ping([h1, h2]))
print("mac", h1.MAC(), net.linksBetween(net["s1"], net["s2"])[0])
net.stop()
