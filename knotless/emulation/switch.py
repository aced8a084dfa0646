"""A switch: a bridge of the fabric's private Open vSwitch."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

from knotless.emulation import namespaces
from knotless.emulation.described_node import DescribedNode
from knotless.emulation.mn import OVSSwitch, with_own_mark
from knotless.emulation.names import MARK, Names
from knotless.emulation.ovs import PrivateOvs
from knotless.emulation.switches import Switches
from knotless.topologies.fabric import Switch


class EmulatedSwitch(DescribedNode, OVSSwitch):  # type: ignore[misc]  # Mininet is not typed
    """A Mininet switch whose shell is in the switches' namespace and uses the private OVS.

    All bridges of a fabric are created in one transaction
    (:meth:`knotless.emulation.ovs.PrivateOvs.add_switches`); ``sh``, ``dpctl`` and ``s1 COMMAND``
    at the prompt use this Open vSwitch. ``start`` and ``stop`` are those of
    :mod:`knotless.emulation.switches`.
    """

    OVSVersion = "3.1"
    start_all: Callable[[str], None] | None = None

    def begin(self, switch: Switch, *, names: Names, ovs: PrivateOvs) -> None:
        """Start the shell; the bridge is created with all others."""
        self.description = switch
        self._names = names
        self._ovs = ovs
        OVSSwitch.__init__(
            self,
            switch.name,
            dpid=f"{switch.dpid:x}",
            datapath=ovs.datapath,
            protocols="OpenFlow13",
            inNamespace=False,  # no namespace of its own: all switches share one
        )

    @classmethod
    def setup(cls) -> None:
        """Skip Mininet's check for the machine's own Open vSwitch."""

    def _popen(self, cmd: list[str], **params: Any) -> subprocess.Popen[bytes]:
        environment = params.pop("env", None) or os.environ
        process: subprocess.Popen[bytes] = super()._popen(
            namespaces.enter(
                self._ovs.process(self.description.name).namespace, with_own_mark(cmd)
            ),
            env={**environment, **self._ovs.environment, MARK: self._names.name},
            **params,
        )
        return process

    def start(self, _controllers: Any = None) -> None:
        """Create this switch's bridge again, with its ports and its controllers.

        Before the fabric runs, a script starts it by starting each of its switches.
        """
        if self.shell is None and self.start_all is not None:
            self.start_all(self.name)
        else:
            Switches(self._names).start(self.name)

    def stop(self, deleteIntfs: bool = False) -> None:  # noqa: ARG002, N803 - Mininet's signature
        """Remove this switch's bridge, like a power failure; its cables remain."""
        Switches(self._names).stop(self.name)

    def dpctl(self, *args: str) -> Any:
        """Run ``ovs-ofctl COMMAND BRIDGE ARGS`` on this switch, in OpenFlow 1.3."""
        return self.cmd(
            "ovs-ofctl", "-O", "OpenFlow13", args[0], self._ovs.bridge(self.name), *args[1:]
        )
