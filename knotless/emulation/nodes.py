"""The hosts and switches of a running fabric, as Mininet knows them."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from knotless.emulation import namespaces, wiring
from knotless.emulation.emulated_net import EmulatedNet
from knotless.emulation.host import EmulatedHost
from knotless.emulation.mn import setLogLevel
from knotless.emulation.names import Names
from knotless.emulation.ovs import PrivateOvs
from knotless.emulation.switch import EmulatedSwitch
from knotless.topologies.fabric import Fabric, Host, Switch

LEARNED_ADDRESSES_LIMIT = 1024
"""The kernel's gc_thresh3: the number of ARP entries of all hosts together."""
AT_ONCE = 4
"""Nodes that are started or configured at the same time."""


def make(
    fabric: Fabric,
    names: Names,
    ovs: PrivateOvs,
    *,
    environment: Mapping[str, str],
    prefixes: Mapping[str, int],
    net: Any = None,
) -> Any:
    """Return a Mininet with all hosts and switches, but without links.

    ``environment`` is that of programs on hosts; ``prefixes`` has the length of the IP prefix of
    hosts that do not have that of all. A ``net`` that is given has nodes that do not run yet, which
    begin to run.
    """
    if net is None:
        setLogLevel("warning")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    net = EmulatedNet(controller=None, build=False) if net is None else net
    prefix = wiring.prefix_length(fabric)

    def host(description: Host) -> EmulatedHost:
        node: EmulatedHost = net.nameToNode.get(description.name) or EmulatedHost(description.name)
        node.begin(
            names=names,
            host=description,
            prefix=prefixes.get(description.name, prefix),
            environment=environment,
        )
        return node

    def switch(description: Switch) -> EmulatedSwitch:
        node: EmulatedSwitch = net.nameToNode.get(description.name) or EmulatedSwitch(
            description.name
        )
        node.begin(description, names=names, ovs=ovs)
        return node

    # Each node waits for its shell's prompt, and each host for its network namespace.
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        hosts, switches = (
            list(pool.map(host, fabric.hosts)),
            list(pool.map(switch, fabric.switches)),
        )
    net.hosts += (node for node in hosts if node not in net.hosts)
    net.switches += (node for node in switches if node not in net.switches)
    net.nameToNode |= {node.name: node for node in hosts + switches}
    net.built = True
    namespaces.ip_batch(f"netns attach {node.namespace} {node.pid}" for node in net.hosts)
    return net


def configure(
    net: Any, fabric: Fabric, static_arp: bool | None, *, held: bool, slow_down: float
) -> None:
    """Give all hosts of a Mininet with links their addresses.

    They know all others from the start if ``static_arp``, or, if that is None, if they could not
    learn them. ``held`` is whether the emulator holds their packets; ``slow_down`` is how much
    slower than real time virtual time is at least, for TCP's timers.
    """
    hosts = fabric.hosts
    if static_arp is None:
        static_arp = len(hosts) * (len(hosts) - 1) > LEARNED_ADDRESSES_LIMIT
    arp_hosts = hosts if static_arp else ()

    def one(node: EmulatedHost) -> None:
        interface = node.defaultIntf()
        node.configure(interface.name, held=held, arp_hosts=arp_hosts, slow_down=slow_down)
        node.tell_mininet(interface)

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        list(pool.map(one, net.hosts))
