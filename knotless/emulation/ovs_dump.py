"""The rules in the switches of a running fabric, read with ovs-ofctl."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from knotless.base import yaml_file
from knotless.base.errors import EmulationError, KnotlessError, PlanError, RuleError
from knotless.base.files import read_text
from knotless.emulation import rest, state
from knotless.emulation.interface_names import interface_names
from knotless.emulation.names import Names, names_of
from knotless.emulation.requirements import require_fabrics
from knotless.forwarding.openflow.directory import read_tags
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.forwarding.state import ForwardingState
from knotless.routing.multicast import MulticastGroup, groups_of
from knotless.routing.request import OPTIONS, PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import read

_TIMEOUT_S = 60
_READINGS = 8
"""After the first one; a change mostly takes less than two."""
_AT_ONCE = 4


def read_live(name: str) -> tuple[Fabric, FabricRules, str]:
    """Return the running fabric called ``name``, its switches' current rules and its flow control.

    A switch that is stopped has no rules. The flow control is one of
    :data:`knotless.base.flow_control.CHOICES`; ``auto`` if unknown. Switches are not read at the
    same moment, so they are read until two readings are equal: the rules are then those that all
    held at one moment, and not a mixture of those before and after a change.

    Raises
    ------
    RuleError
        A switch does not answer, or rules change all the time.
    EmulationError
        No such fabric is running or can have that name, or the user may not see running fabrics.

    """
    names = names_of(name)
    require_fabrics()
    if not names.fabric_file.exists():
        raise state.no_fabric(name)
    fabric = read(names.fabric_file)
    rules, changing = _read_once(names, fabric), list[str]()
    for _ in range(_READINGS):
        before, rules = rules, _read_once(names, fabric)
        changing = [name for name in rules if not _alike(before[name], rules[name])]
        if not changing:
            return fabric, rules, _request(names).flow_control
    raise RuleError(
        f"rules change while they are read, those of {', '.join(changing[:3])} in the last of"
        f" {1 + _READINGS} readings: check again when knotless status says that routes are settled"
    )


def _read_once(names: Names, fabric: Fabric) -> dict[str, SwitchRules]:
    """Return what each switch holds when it is asked."""
    stopped = state.stopped_switches(names)
    bridges = interface_names(fabric)

    def read_switch(name: str) -> SwitchRules:
        if name in stopped:
            return SwitchRules(())
        bridge = bridges[name]
        try:
            flows = _dump(names.ovs_directory, bridge, "dump-flows")
            return parse(flows, _dump(names.ovs_directory, bridge, "dump-groups"))
        except RuleError as error:
            raise error.within(name) from None

    switches = [switch.name for switch in fabric.switches]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(switches, pool.map(read_switch, switches), strict=True))


def _alike(a: SwitchRules, b: SwitchRules) -> bool:
    """Return whether rules and groups are the same, in any order."""
    return {*a.rules} == {*b.rules} and {*a.groups} == {*b.groups}


def live_multicast(fabric: Fabric, name: str) -> tuple[MulticastGroup, ...]:
    """Return the multicast groups of the fabric called ``name`` that are declared now.

    The controller says which; if none answers, its files do. Without our controller they are those
    with which the fabric was started.
    """
    names = names_of(name)
    try:
        return groups_of(fabric, dict((_declared(names) or _request(names)).multicast))
    except PlanError:
        return ()


def live_state(name: str) -> tuple[ForwardingState, str]:
    """Return what :func:`read_live` reads as a forwarding state, and the flow control in use."""
    fabric, rules, in_use = read_live(name)
    tags = read_tags(fabric, names_of(name).directory)
    return state_of_rules(fabric, rules, live_multicast(fabric, name), tags), in_use


def _declared(names: Names) -> PlanRequest | None:
    """Return what our controller has been asked for; None if it is not ours, or nobody knows."""
    fabric_state = state.read(names)
    if fabric_state is None or fabric_state.settings.get("controller") != "ryu":
        return None
    try:
        answer = rest.status_of(rest.ports_of(fabric_state.settings))
        return PlanRequest.from_options(**answer["request"])
    except (EmulationError, LookupError, TypeError, PlanError):
        pass
    try:
        return _kept(names)
    except (KnotlessError, LookupError, TypeError, ValueError):
        return None


def _kept(names: Names) -> PlanRequest:
    """Return the request with which a controller would start.

    It is that of its configuration, unless operators have changed the plan since the file was
    edited (``knotless.controller.overrides``). Raises KnotlessError, or what malformed files cause.
    """
    config: Any = yaml_file.read(names.controller_file, PlanError)
    request = PlanRequest.from_options(
        **{key: value for key, value in config.items() if key in OPTIONS}
    )
    if not names.overrides_file.exists():
        return request
    overrides = json.loads(read_text(names.overrides_file, PlanError))
    if overrides["configured"] != request.as_settings():
        return request
    return request.but(**overrides["options"])


def _request(names: Names) -> PlanRequest:
    """Return the request of the fabric's plan, or the default one if it is unknown."""
    fabric_state = state.read(names)
    try:
        return PlanRequest.from_settings(fabric_state.settings) if fabric_state else PlanRequest()
    except (LookupError, TypeError, ValueError, AttributeError, PlanError):
        return PlanRequest()


def _dump(ovs: Path, bridge: str, what: str) -> str:
    command = ["ovs-ofctl", "-O", "OpenFlow13", "--no-names", what, f"unix:{ovs / bridge}.mgmt"]
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
        raise RuleError("ovs-ofctl is not installed; run tools/setup.sh") from None
    except subprocess.TimeoutExpired:
        raise RuleError(f"Open vSwitch does not answer {what} within {_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["ovs-ofctl failed"]
        raise RuleError(lines[-1])
    return done.stdout
