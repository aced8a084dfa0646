"""A switch: a bridge of the fabric's private Open vSwitch."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Any

from emulation import namespaces
from emulation.mn import OVSSwitch
from emulation.names import MARK, Names


class EmulatedSwitch(OVSSwitch):  # type: ignore[misc]  # Mininet is not typed
    """A Mininet switch whose shell is in the switches' namespace, facing the private OVS.

    The bridges of a whole fabric are made in one transaction
    (:meth:`emulation.ovs.PrivateOvs.add_switches`); ``sh``, ``dpctl`` and ``s1 COMMAND``
    at the prompt then see this Open vSwitch and no other.
    """

    OVSVersion = "3.1"

    def __init__(
        self, name: str, *, names: Names, environment: Mapping[str, str], **params: Any
    ) -> None:
        self._names = names
        self._environment = dict(environment)
        super().__init__(name, datapath="user", protocols="OpenFlow13", **params)

    @classmethod
    def setup(cls) -> None:
        """Do not look for the machine's own Open vSwitch: ours is not there."""

    def _popen(self, cmd: list[str], **params: Any) -> subprocess.Popen[bytes]:
        environment = params.pop("env", None) or os.environ
        process: subprocess.Popen[bytes] = super()._popen(
            namespaces.enter(self._names.switches_namespace, cmd),
            env={**environment, **self._environment, MARK: self._names.name},
            **params,
        )
        return process

    def dpctl(self, *args: str) -> Any:
        """Run ``ovs-ofctl COMMAND SWITCH ARGS``, in OpenFlow 1.3."""
        return self.cmd("ovs-ofctl", "-O", "OpenFlow13", args[0], self.name, *args[1:])
