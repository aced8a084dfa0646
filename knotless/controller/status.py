"""Reports to operators: problems, one line each, and the answer to ``GET /status``. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from knotless.controller.ahead import Ahead
from knotless.controller.desired import Desired
from knotless.controller.not_admitted import NotAdmitted
from knotless.controller.observed import DUPLICATE_MEMORY_S, Observed, ObservedSwitch
from knotless.controller.planning import Goal
from knotless.controller.transition import Transition
from knotless.controller.unfinished import Begun
from knotless.topologies.failures import pairs_apart

_SHOWN = 3


@dataclass
class Status:
    """The state of a controller.

    ``started_s``, on the caller's clock, is when switches could first connect. ``note`` is what
    became of the last reload, if it changed nothing although it should have. ``leads``: whether
    this controller changes rules; of several controllers only the active one does, when it has read
    the rules of all switches. ``unfinished``: a change has begun that is not complete, perhaps by
    another controller, or by this one before it was started again.
    """

    desired: Desired
    observed: Observed = field(init=False)
    transition: Transition = field(init=False)
    not_admitted: NotAdmitted = field(init=False)
    ahead: Ahead = field(default_factory=Ahead)
    started_s: float = 0.0
    note: str | None = None
    leads: bool = True
    unfinished: bool = False
    found: Callable[[], list[str]] = list
    """Returns what was found besides the fabric and is not used, one line each."""
    stretch: float | None = None
    """Real over virtual time of emulated links, lately; None: unknown, or links are real."""
    role: Callable[[], dict[str, object] | None] = lambda: None
    """What ``GET /status`` shows of several controllers."""

    def __post_init__(self) -> None:
        self.observed = Observed(self.desired.fabric)
        self.transition = Transition(self.desired)
        self.not_admitted = NotAdmitted(self.desired.fabric)

    def differs(self, begun: Begun) -> bool:
        """Tell whether more exists since a change has begun than is known; raises FabricError."""
        new, known = begun.existing.extended(self.desired.fabric), self.transition.existing
        return (new.fabric, new.staying) != (known.fabric, known.staying)

    def resume(self, begun: Begun) -> None:
        """Go on with a change that was begun and is not complete.

        Nothing may be changed before all rules were read. Raises FabricError if the desired state
        and what exists since then cannot be united.
        """
        transition = self.transition
        transition.existing = begun.existing.extended(self.desired.fabric)
        transition.flow_control = begun.flow_control
        self.leads, self.unfinished = False, True
        self._fit()

    def extend(self, desired: Desired) -> None:
        """Take another desired state; what its fabric adds exists from now on as well."""
        self.transition.extend(desired)
        self.desired = desired
        self._fit()

    def withdraw(self) -> None:
        """Forget what the fabric had before it changed."""
        if not self.leads:
            self.transition.goal = Goal(self.desired)  # another controller has reached it
        self.transition.withdraw()
        self._fit()

    def _fit(self) -> None:
        self.observed.fit(self.transition.existing.fabric)
        self.not_admitted.fit(self.transition.existing.fabric)

    def missing_switches(self, now_s: float) -> list[ObservedSwitch]:
        """Return the switches that are not connected although their time is up."""
        if now_s - self.started_s < self.desired.config.connect_timeout_s:
            return []
        return [switch for switch in self.observed.switches.values() if not switch.connected]

    def problems(self, now_s: float) -> list[str]:
        """Return all problems, one line each."""
        observed = self.observed
        dead = observed.switches_down()
        lines = [
            missing_switch(switch, dead=switch.name in dead, observed=observed)
            for switch in self.missing_switches(now_s)
        ]
        for switch in observed.switches.values():
            lines += switch_problems(switch)
        lines += observed.fault_lines
        explained = observed.ends_missing() | observed.link_faults.keys()
        down = [name for name in observed.links_down() if name not in explained]
        lines += [f"link {name} is down" for name in down]
        down = [name for name in observed.hosts_down() if name not in explained]
        lines += [f"the link of host {name} is down" for name in down]
        if separated := observed.separated():
            lines.append(separation(separated))
        lines += [self.unknown_dpid(dpid) for dpid in sorted(observed.unknown)]
        recent = now_s - DUPLICATE_MEMORY_S
        lines += [
            self.duplicate_dpid(dpid)
            for dpid, at_s in sorted(observed.duplicate_dpids.items())
            if at_s > recent
        ]
        lines += self.not_admitted.problems(now_s)
        if self.unfinished and not self.leads and self.missing_switches(now_s):
            lines.append(
                "a change that was interrupted goes on when all switches are connected, or dead"
            )
        lines += self.found()
        if self.note is not None:
            lines.append(self.note)
        if self.transition.problem is not None:
            lines.append(f"the routes stay as they are: {self.transition.problem}")
        lines += [
            f"{name} is drained but still used: without it, some hosts could not reach each other"
            for name in self.transition.goal.avoided.needed
        ]
        if self.transition.not_drained is not None:
            lines.append(self.transition.not_drained)
        return lines + list(self.desired.verdict.problems)

    def unknown_dpid(self, dpid: int) -> str:
        """Describe a connected switch that is not in the fabric."""
        dpids = sorted(self.observed.switches)
        known = f"{dpids[0]} to {dpids[-1]}" if dpids else "none"
        return (
            f"a switch with dpid {dpid} is connected, but fabric {self.desired.fabric.name}"
            f" declares no such dpid (it has {known}): nothing is installed on it"
        )

    def duplicate_dpid(self, dpid: int) -> str:
        """Describe two switches with the same dpid."""
        switch = self.observed.switches[dpid]
        return f"two switches say they are {switch}: only the first is served"

    def as_json(self, now_s: float) -> dict[str, Any]:
        """Return the answer to ``GET /status``."""
        desired, observed = self.desired, self.observed
        separated = observed.separated()
        return {
            "pid": os.getpid(),
            "fabric": desired.fabric.name,
            "engine": desired.plan.engine,
            "flow_control": desired.plan.flow_control,
            "ready": self.leads and observed.ready,
            "role": self.role(),
            "switches": {
                switch.name: {
                    "dpid": switch.dpid,
                    "connected": switch.connected,
                    "installed": switch.installed,
                    "rules": len(self.transition.wanted(switch.name).rules),
                    "missing_ports": list(switch.missing_ports),
                }
                for switch in observed.switches.values()
            },
            "links_down": list(observed.links_down()),
            "link_faults": dict(observed.link_faults),
            "hosts_down": list(observed.hosts_down()),
            "switches_down": list(observed.switches_down()),
            "unreachable": pairs_apart(separated),
            "separated": separated,
            "routes": self._routes(),
            "drained": list(desired.drained),
            "request": desired.config.plan_request.model_dump(mode="json"),
            "problems": self.problems(now_s),
            "plan": desired.summary,
            "check": desired.verdict.as_json(),
        }

    def _routes(self) -> dict[str, object]:
        """Return where the routes are; a goal that was only just set counts as a change."""
        found = self.transition.as_json()
        if self.transition.goal.desired is not self.desired:
            found["changing"] = True
        found["planned_ahead"] = self.ahead.as_json(self.transition.idle_task)
        return found


def missing_switch(switch: ObservedSwitch, *, dead: bool, observed: Observed) -> str:
    """Describe a switch that is not connected."""
    if dead:
        return f"{switch} is dead: nothing comes from it on any link"
    if switch.name in observed.reflecting:
        return f"{switch} is not connected, but forwards: probes of its neighbours come back"
    return f"{switch} is not connected"


def separation(by_part: Sequence[Sequence[str]]) -> str:
    """Describe the parts into which failures divide the fabric, by their hosts."""
    first, *others = [_some(names) for names in by_part]
    more = len(others) - _SHOWN
    parts = [*others[:_SHOWN], *([f"{more} more parts"] if more > 0 else [])]
    return (
        f"failures separate {first} from {', and from '.join(parts)}:"
        f" {pairs_apart(by_part)} pairs of hosts cannot reach each other"
    )


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def switch_problems(switch: ObservedSwitch) -> list[str]:
    """Return the problems of a connected switch, one line each."""
    lines = [
        f"{switch} has no port {port}, which the fabric declares to {switch.needs[port]}"
        for port in switch.missing_ports
    ]
    lines += [f"{switch} refused {text}" for text in switch.refused[:_SHOWN]]
    if len(switch.refused) > _SHOWN:
        lines.append(f"{switch} refused {len(switch.refused) - _SHOWN} more such changes")
    if switch.foreign:
        first = switch.foreign[0]
        lines.append(
            f"{switch} holds {len(switch.foreign)} rules that are not Knotless's (cookie"
            f" {first.cookie:#x} in table {first.table}): frames that they match are outside"
            " of what was checked; delete them with ovs-ofctl del-flows"
        )
    return lines
