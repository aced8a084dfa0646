"""The rules that the switches of a running fabric hold, read by ovs-ofctl."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from routing import ofctl
from routing.multicast import MulticastGroup, groups_of
from routing.rules import FabricRules
from topologies.errors import RuleError
from topologies.fabric import Fabric
from topologies.files import read

RUN_DIRECTORY = Path("/run/knotless")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")
_TIMEOUT_S = 60


def read_live(name: str) -> tuple[Fabric, FabricRules, str]:
    """Return the running fabric called ``name``, its switches' rules now, and its flow control.

    The last is one of :data:`routing.cdg.FLOW_CONTROLS`: ``pfc`` when its links use that, else
    ``pause``, which is also right to ask about before PAUSE is turned on.

    Raises
    ------
    RuleError
        No such fabric runs, this is not root, or a switch does not answer.

    """
    if not _NAME.fullmatch(name):
        raise RuleError(f"{name!r} is no name of a running fabric")
    folder = RUN_DIRECTORY / name
    if os.geteuid() != 0:
        raise RuleError("check --live reads the switches' sockets: run it as root")
    if not (folder / "fabric.json").exists():
        raise RuleError(f"no fabric {name!r} is running; start one with knotless up")
    fabric = read(folder / "fabric.json")
    rules: FabricRules = {}
    for switch in fabric.switches:
        flows = _dump(folder / "ovs", switch.name, "dump-flows")
        groups = _dump(folder / "ovs", switch.name, "dump-groups")
        try:
            rules[switch.name] = ofctl.parse(flows, groups)
        except RuleError as error:
            raise error.within(switch.name) from None
    return fabric, rules, _flow_control(folder)


def live_multicast(fabric: Fabric, name: str) -> tuple[MulticastGroup, ...]:
    """Return the multicast groups that the running fabric called ``name`` was started with."""
    try:
        declared = _settings(RUN_DIRECTORY / name)["multicast"]
        return groups_of(fabric, {int(number): of for number, of in declared.items()})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return ()


def _flow_control(folder: Path) -> str:
    try:
        return "pfc" if _settings(folder)["flow_control"] == "pfc" else "pause"
    except (OSError, ValueError, LookupError, TypeError):
        return "pause"


def _settings(folder: Path) -> Any:
    """Return what the fabric was started with; many errors where that is not known."""
    return json.loads((folder / "state.json").read_text())["settings"]


def _dump(ovs: Path, switch: str, what: str) -> str:
    command = ["ovs-ofctl", "-O", "OpenFlow13", "--no-names", what, f"unix:{ovs / switch}.mgmt"]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "OVS_RUNDIR": str(ovs)},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise RuleError("ovs-ofctl is not installed; run make setup") from None
    except subprocess.TimeoutExpired:
        raise RuleError(f"{switch}: no answer to {what} within {_TIMEOUT_S} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["ovs-ofctl failed"]
        raise RuleError(f"{switch}: {lines[-1]}")
    return done.stdout
