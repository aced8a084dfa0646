"""Reports to operators: problems, one line each, and the answer to ``GET /status``. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from knotless.base.link_problems import link_problems
from knotless.base.printable import listed
from knotless.controller.foreign_changes import UNJUDGED
from knotless.controller.observed import DUPLICATE_MEMORY_S, Observed, ObservedSwitch
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.outage import NO_OUTAGE
from knotless.controller.updates.report import routes_as_json
from knotless.topologies.failures import pairs_apart

_SHOWN = 3


def _nothing() -> None:
    """There is none."""


class Status:
    """Reports of the state of a controller.

    It is told more than is in ``state``: ``last_change`` returns the last change of routes that all
    switches have confirmed, ``role`` the role of one of several controllers, ``undeclared`` what
    was found besides the fabric and is not used, one line each. Times are on the caller's clock, in
    seconds.
    """

    def __init__(
        self,
        state: FabricState,
        *,
        last_change: Callable[[], dict[str, object] | None] = _nothing,
        role: Callable[[], dict[str, object] | None] = _nothing,
        undeclared: Callable[[], list[str]] = list,
    ) -> None:
        self.state = state
        self._last_change, self._role, self._undeclared = last_change, role, undeclared
        self._started_s = 0.0
        self._refused_reload: str | None = None
        self._links: Mapping[str, Any] = {}

    # --- what the service knows --------------------------------------------------------------

    def start(self, now_s: float) -> None:
        """Record when switches could first connect."""
        self._started_s = now_s

    def note(self, problem: str | None) -> None:
        """Show why the last reload, or the resumption of an update, failed; None: it did not."""
        self._refused_reload = problem

    def see_links(self, status: Mapping[str, Any]) -> None:
        """Record the status of the link emulator; empty if it does not answer."""
        self._links = status

    @property
    def stretch(self) -> float | None:
        """Real over virtual time of emulated links, lately; None: unknown, or links are real."""
        return self._links.get("stretch_now")

    @property
    def is_deadlocked(self) -> bool | None:
        """Whether emulated links are deadlocked; None: unknown, or links are real."""
        return self._links["deadlock"] is not None if "deadlock" in self._links else None

    @property
    def link_problems(self) -> list[str]:
        """The problems of emulated links, a deadlock first."""
        return link_problems(self._links)

    @property
    def role(self) -> dict[str, object] | None:
        """The role of one of several controllers; None: this is the only one."""
        return self._role()

    # --- reports -----------------------------------------------------------------------------

    def missing_switches(self, now_s: float) -> list[ObservedSwitch]:
        """Return the switches that are not connected although their time is up."""
        if now_s - self._started_s < self.state.desired.config.connect_timeout_s:
            return []
        return [switch for switch in self.state.observed.switches.values() if not switch.connected]

    def problems(self, now_s: float) -> list[str]:
        """Return all problems, one line each."""
        return [
            *self._problems_of_switches(now_s),
            *self._problems_of_links(),
            *self._problems_of_dpids(now_s),
            *self.state.unadmitted.problems(now_s),
            *self._problems_of_updates(now_s),
            *self.state.desired.verdict.problems,
        ]

    def _problems_of_switches(self, now_s: float) -> list[str]:
        observed = self.state.observed
        dead = observed.switches_down()
        lines = [
            missing_switch(switch, dead=switch.name in dead, observed=observed)
            for switch in self.missing_switches(now_s)
        ]
        for switch in observed.switches.values():
            lines += switch_problems(switch, observed.foreign_verdict or UNJUDGED)
        lines += [deaf_switch(observed.by_name[name]) for name in sorted(observed.deaf)]
        if observed.too_many_deaf:
            lines.append(many_deaf(sorted(observed.too_many_deaf), len(observed.switches)))
        return lines

    def _problems_of_links(self) -> list[str]:
        observed = self.state.observed
        lines = list(observed.fault_lines)
        explained = observed.ends_missing() | observed.link_faults.keys()
        down = [name for name in observed.links_down() if name not in explained]
        lines += [f"link {name} is down" for name in down]
        down = [name for name in observed.hosts_down() if name not in explained]
        lines += [f"the link of host {name} is down" for name in down]
        if separated := observed.separated():
            lines.append(separation(separated))
        return lines

    def _problems_of_dpids(self, now_s: float) -> list[str]:
        observed = self.state.observed
        unknown = sorted(observed.unknown)
        recent = now_s - DUPLICATE_MEMORY_S
        claimed = observed.duplicate_dpids.items()
        duplicates = sorted(dpid for dpid, at_s in claimed if at_s > recent)
        # Whoever can connect can claim thousands of dpids.
        return [
            *map(self.unknown_dpid, unknown[:_SHOWN]),
            *([self.more_unknown_dpids(unknown)] if len(unknown) > _SHOWN else []),
            *map(self.duplicate_dpid, duplicates[:_SHOWN]),
            *([self.more_duplicate_dpids(duplicates)] if len(duplicates) > _SHOWN else []),
        ]

    def _problems_of_updates(self, now_s: float) -> list[str]:
        state, update = self.state, self.state.update
        lines = []
        if state.is_interrupted and not state.leads and self.missing_switches(now_s):
            lines.append(
                "a change that was interrupted goes on when all switches are connected, or dead"
            )
        lines += state.file_problems.values()
        lines += self._undeclared()
        if self._refused_reload is not None:
            lines.append(self._refused_reload)
        lines += state.planning.problems(now_s)
        if update.problem is not None:
            lines.append(f"the routes stay as they are: {update.problem}")
        lines += [
            f"{name} is drained but still used: without it, some hosts could not reach each other"
            for name in update.goal.avoided.needed
        ]
        if update.overdue is not None:
            lines.append(update.overdue)
        return lines

    def unknown_dpid(self, dpid: int) -> str:
        """Describe a connected switch that is not in the fabric."""
        dpids = sorted(self.state.observed.switches)
        declared = f"{dpids[0]} to {dpids[-1]}" if dpids else "none"
        return (
            f"a switch with dpid {dpid} is connected, but fabric {self.state.desired.fabric.name}"
            f" declares no such dpid (it has {declared}): nothing is installed on it"
        )

    def more_unknown_dpids(self, dpids: Sequence[int]) -> str:
        """Describe how many of these are not described one by one."""
        return (
            f"{len(dpids) - _SHOWN} more such switches are connected, with dpids from"
            f" {dpids[_SHOWN]} to {dpids[-1]}: nothing is installed on them"
        )

    def more_duplicate_dpids(self, dpids: Sequence[int]) -> str:
        """Describe how many of these are not described one by one."""
        return f"{len(dpids) - _SHOWN} more dpids are claimed by two switches: only one is served"

    def duplicate_dpid(self, dpid: int) -> str:
        """Describe two switches with the same dpid."""
        switch = self.state.observed.switches[dpid]
        return f"two switches say they are {switch}: only one is served"

    def as_json(self, now_s: float) -> dict[str, Any]:
        """Return the answer to ``GET /status``."""
        state, desired, observed = self.state, self.state.desired, self.state.observed
        separated = observed.separated()
        return {
            "pid": os.getpid(),
            "fabric": desired.fabric.name,
            "engine": desired.plan.engine,
            "flow_control": desired.plan.flow_control,
            "ready": state.ready,
            "role": self.role,
            "switches": {
                switch.name: {
                    "dpid": switch.dpid,
                    "connected": switch.connected,
                    "installed": switch.installed,
                    "rules": len(state.update.progress.wanted(switch.name).rules),
                    "missing_ports": list(switch.missing_ports),
                }
                for switch in observed.switches.values()
            },
            "links_down": list(observed.links_down()),
            "link_faults": dict(observed.link_faults),
            "hosts_down": list(observed.hosts_down()),
            "switches_down": list(observed.switches_down()),
            "switches_deaf": sorted(observed.deaf),
            "unreachable": pairs_apart(separated),
            "separated": separated,
            "routes": self._routes(now_s),
            "last_change": self._last_change(),
            "drained": list(desired.drained),
            "unconfirmed": state.is_unconfirmed,
            "request": desired.config.as_settings(),
            "problems": self.problems(now_s),
            "link_problems": self.link_problems,
            "plan": desired.summary,
            "check": desired.verdict.as_json(),
        }

    def _routes(self, now_s: float) -> dict[str, object]:
        """Return where the routes are; a goal that was only just set counts as a change."""
        update = self.state.update
        routes = routes_as_json(update)
        if update.goal.desired is not self.state.desired:
            routes["changing"] = True
        outage = self.state.outage
        routes["down"] = NO_OUTAGE if outage is None else outage.as_json(now_s)
        routes["planned_ahead"] = self.state.precomputed.as_json(update.idle_task)
        return routes


def missing_switch(switch: ObservedSwitch, *, dead: bool, observed: Observed) -> str:
    """Describe a switch that is not connected."""
    if dead:
        return f"{switch} is dead: nothing comes from it on any link"
    if switch.is_unread:
        return f"{switch} is not connected: it counts as failed until its rules have been read"
    if switch.name in observed.reflecting:
        return f"{switch} is not connected, but forwards: probes of its neighbours come back"
    return f"{switch} is not connected"


def deaf_switch(switch: ObservedSwitch) -> str:
    """Describe a switch that is deaf."""
    return (
        f"{switch} is deaf: its ports count the frames that arrive, and its rules are as they"
        " should be, but no probe among these frames comes out; routes avoid it"
    )


def many_deaf(names: Sequence[str], switches: int) -> str:
    """Describe deaf switches that are too many to route around them."""
    return (
        f"{listed(names, _SHOWN)} count the frames that arrive, but no probe among these comes out:"
        f" {len(names)} of {switches} switches are more than a quarter, so the routes stay"
    )


def separation(by_part: Sequence[Sequence[str]]) -> str:
    """Describe the parts into which failures divide the fabric, by their hosts."""
    first, *others = [listed(names, _SHOWN) for names in by_part]
    more = len(others) - _SHOWN
    parts = [*others[:_SHOWN], *([f"{more} more parts"] if more > 0 else [])]
    return (
        f"failures separate {first} from {', and from '.join(parts)}:"
        f" {pairs_apart(by_part)} pairs of hosts cannot reach each other"
    )


def switch_problems(switch: ObservedSwitch, verdict: str = UNJUDGED) -> list[str]:
    """Return the problems of a connected switch, one line each.

    ``verdict`` is that on the rules of others in all switches.
    """
    lines = [
        f"{switch} has no port {port}, which the fabric declares to {switch.needs[port]}"
        for port in switch.missing_ports
    ]
    refused = switch.refused + switch.refused_probes
    lines += [f"{switch} refused {text}" for text in refused[:_SHOWN]]
    if len(refused) > _SHOWN:
        lines.append(f"{switch} refused {len(refused) - _SHOWN} more such changes")
    if switch.is_doubted:
        lines.append(
            f"{switch} has connected again, but no probe shows a cable of it: nothing is changed on"
            " it, because it may be another switch with this dpid"
        )
    if switch.changed_by_others:
        lines.append(switch.changed_text)
    if switch.probe_rules_lost:
        lines.append(switch.probes_lost_text)
    if count := len(switch.foreign) + switch.foreign_unread:
        lines.append(
            f"{switch} holds {count} rules that are not Knotless's ({switch.first_foreign}):"
            f" {verdict}; delete them with ovs-ofctl del-flows"
        )
    return lines
