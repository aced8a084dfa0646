"""The hosts and switches of a running fabric, as Mininet knows them."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from emulation import namespaces, wiring
from emulation.host import EmulatedHost
from emulation.mn import Mininet, setLogLevel
from emulation.names import Names
from emulation.ovs import PrivateOvs
from emulation.switch import EmulatedSwitch
from topologies.fabric import Fabric, Host, Switch

AT_ONCE = 4
"""Nodes that are started or configured at the same time."""


def make(
    fabric: Fabric,
    names: Names,
    ovs: PrivateOvs,
    *,
    ports: Mapping[str, Mapping[int, str]],
    controller: str | None,
    virtual_clock: bool,
) -> Any:
    """Return a Mininet with all hosts and switches, but without links.

    ``ports`` are the interfaces of each switch, ``controller`` is Open vSwitch's name of its
    controller. With ``virtual_clock`` programs on hosts see virtual time.
    """
    setLogLevel("warning")
    # Mininet's own initialisation would change sysctl settings of the whole machine.
    Mininet.inited = True
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    net = Mininet(controller=None, build=False)
    prefix = wiring.prefix_length(fabric)

    def host(description: Host) -> EmulatedHost:
        return EmulatedHost(
            description.name,
            names=names,
            host=description,
            prefix=prefix,
            virtual_clock=virtual_clock,
        )

    def switch(description: Switch) -> EmulatedSwitch:
        return EmulatedSwitch(
            description,
            names=names,
            ovs=ovs,
            ports=ports.get(description.name, {}),
            controller=controller,
        )

    # Each node waits for its shell's prompt, and each host for its network namespace.
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        net.hosts += pool.map(host, fabric.hosts)
        net.switches += pool.map(switch, fabric.switches)
    net.nameToNode |= {node.name: node for node in net.hosts + net.switches}
    net.built = True
    namespaces.ip_batch(f"netns attach {node.namespace} {node.pid}" for node in net.hosts)
    return net
