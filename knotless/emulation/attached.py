"""Nodes of a running fabric for another process than its owner: new shells in its namespaces."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from knotless.emulation import state, wiring
from knotless.emulation.emulated_net import EmulatedNet
from knotless.emulation.host import EmulatedHost
from knotless.emulation.interface_names import interface_names
from knotless.emulation.link import EmulatedLink
from knotless.emulation.mn import Host
from knotless.emulation.nodes import AT_ONCE
from knotless.emulation.ovs import PrivateOvs
from knotless.emulation.running_fabric import RunningFabric
from knotless.emulation.runtime import Runtime
from knotless.emulation.switch import EmulatedSwitch
from knotless.topologies import fabric as description


class AttachedHost(EmulatedHost):
    """A host of a running fabric, with a shell of its own in the host's namespaces."""

    def __init__(self, host: description.Host, running: RunningFabric, prefix: int) -> None:
        super().__init__(host.name)
        self.description, self._prefix, self._running = host, prefix, running
        self._environment = running.environment
        self._is_shell = True
        Host.__init__(self, host.name, inNamespace=False)
        self._is_shell = False

    def _popen(self, cmd: list[str], **params: Any) -> subprocess.Popen[bytes]:
        """Start a program; what follows the shell enters the shell's namespaces by itself."""
        argv = self._running.command_on(self.name, cmd) if self._is_shell else cmd
        return super()._popen(argv, **params)


def attach(running: RunningFabric) -> EmulatedNet:
    """Return a Mininet with shells on all hosts and switches of a running fabric.

    Several processes can do so at once. The shells end with this process, or with the fabric.
    Raises :class:`knotless.base.errors.EmulationError` if the fabric has ended.
    """
    names, fabric, settings = running.names, running.fabric, running.settings
    cables = wiring.divided(wiring.wire(fabric), settings.get("switch_processes", 1))
    ovs = PrivateOvs(
        Runtime(names, state.require_running(names)),
        settings.get("datapath", "user"),
        wiring.process_of_switches(cables),
        interface_names(fabric),
    )
    net = EmulatedNet(controller=None, build=False)
    prefix, prefixes = wiring.prefix_length(fabric), settings.get("host_prefixes", {})

    def host(one: description.Host) -> AttachedHost:
        return AttachedHost(one, running, prefixes.get(one.name, prefix))

    def switch(one: description.Switch) -> EmulatedSwitch:
        node = EmulatedSwitch(one.name)
        node.begin(one, names=names, ovs=ovs)
        return node

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        net.hosts += pool.map(host, fabric.hosts)
        net.switches += pool.map(switch, fabric.switches)
    net.nameToNode |= {node.name: node for node in net.hosts + net.switches}
    net.built = True
    daemon = running.daemon if running.links == "emulated" else None
    for cable in cables:
        ends = (net[cable.a.owner], net[cable.b.owner])
        net.links.append(EmulatedLink(*ends, cable=cable, daemon=daemon))
    for node in net.hosts:
        node.tell_mininet(node.defaultIntf())
    net.running = running
    return net


def detach(net: EmulatedNet) -> None:
    """End the shells of :func:`attach`."""
    for node in net.hosts + net.switches:
        node.terminate()
