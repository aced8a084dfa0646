"""A network that a controller of one's own controls, on the address in the command line."""

import sys

from mininet.cli import CLI
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSSwitch, RemoteController

setLogLevel("info")
net = Mininet(controller=RemoteController, switch=OVSSwitch)
c0 = net.addController("c0", ip=sys.argv[1], port=int(sys.argv[2]))
h1 = net.addHost("h1", ip="10.0.0.1")
h2 = net.addHost("h2", ip="10.0.0.2")
s1 = net.addSwitch("s1")
s2 = net.addSwitch("s2")
net.addLink(h1, s1)
net.addLink(h2, s2)
cable = net.addLink(s1, s2)
net.start()
print("cable", cable.intf1, cable.intf2.node)
CLI(net)
net.stop()
