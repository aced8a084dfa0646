"""Faults of the controller that are planted on purpose: the invariants must find each of them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Any
from unittest.mock import patch

from knotless.controller import runtime
from knotless.controller.desired import DesiredState
from knotless.controller.election.election import Election, Request
from knotless.controller.election.takeover import Takeover
from knotless.controller.green import hub as hubs
from knotless.controller.observed import ObservedSwitch
from knotless.controller.openflow.session import Session
from knotless.controller.operations import Operations
from knotless.controller.overrides import Overrides
from knotless.controller.rule_watch import RuleWatch
from knotless.controller.switches import Switches
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.inherited import InheritedRules
from knotless.controller.updates.progress import StepProgress
from knotless.controller.updates.quiescence import CountedRounds
from knotless.controller.updates.scheduler import UpdateScheduler
from knotless.controller.updates.state import UpdateState
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies.failures import Failures
from tests.seeded.aimed import (
    Run,
    bouncing,
    crowded,
    cut_twice,
    emptied,
    flapping,
    impersonated,
    parted,
    reloaded,
    stalling,
    tagged,
    taking_turns,
    usurped,
)
from tests.seeded.known import LATER_KINDS
from tests.seeded.run import FAULTS_S, run
from tests.seeded.world import Setting, Violation

_aim, _failures, _task = UpdateState.aim, FabricState.failures, UpdateState._task
_rounds = StepProgress.quiescence_rounds
_connected = Election.connected
_has_lease, _change_at_once = Election._has_lease, Session.change_at_once
_begin, _take_step, _inherited = UpdateState.begin, Switches.take_step, Takeover._inherited
_keep_begun = Operations.begin
_await_quiescence = UpdateScheduler._await_quiescence


_ONE, _TWO = Setting(0), Setting(0, controllers=2)


@dataclass(frozen=True)
class Planted:
    """Attributes of classes that are replaced, and the runs that find it.

    ``make`` returns (class, attribute, replacement) anew for each run. Each run has the ``setting``
    with its seed, and faults of these ``kinds``; or it is what ``aimed`` returns of the seed.
    """

    make: Callable[[], list[tuple[type, str, Any]]]
    kinds: str = LATER_KINDS
    setting: Setting = _ONE
    aimed: Callable[[int], Run] | None = None


def _process() -> str:
    hub: Any = hubs.current()
    return str(hub.current.name)


def _by_dpid(attribute: str) -> Callable[[], list[tuple[type, str, Any]]]:
    """What is known of a connection is kept by dpid, beyond its end."""

    def make() -> list[tuple[type, str, Any]]:
        kept: dict[tuple[str, int], Any] = {}

        def read(session: Session) -> Any:
            return kept.get((_process(), session.connection.dpid))

        def write(session: Session, value: Any) -> None:
            if value is not None or (_process(), session.connection.dpid) not in kept:
                kept[_process(), session.connection.dpid] = value

        return [(Session, attribute, property(read, write))]

    return make


def _one(kind: type, attribute: str, replacement: Any) -> Callable[[], list[tuple[type, str, Any]]]:
    return lambda: [(kind, attribute, replacement)]


def _keeps_problem(state: UpdateState, *goal: Any) -> None:
    before = state.problem
    _aim(state, *goal)
    state._attempts.problem = state.problem or before


def _confirms_all(state: UpdateState, _name: str) -> None:
    state.progress._unconfirmed.clear()


def _without_in_flight(state: UpdateState, *goal_and_union: Any) -> Any:
    in_flight, state.progress.in_flight = state.progress.in_flight, ()
    try:
        return _task(state, *goal_and_union)
    finally:
        state.progress.in_flight = in_flight


def _one_round_fewer(progress: StepProgress) -> tuple[int, bool]:
    rounds, keeps_order = _rounds(progress)
    return max(1, rounds - 1), keeps_order


def _stay_failed() -> list[tuple[type, str, Any]]:
    seen: dict[int, set[str]] = {}

    def failures(state: FabricState) -> Failures:
        names = seen.setdefault(id(state), set())
        names |= set(_failures(state).links)
        return Failures.from_names(state.observed.fabric, {*_failures(state).names, *names})

    return [(FabricState, "failures", failures)]


def _still_master() -> list[tuple[type, str, Any]]:
    def connected(election: Election, dpid: int, now_s: float) -> list[Request]:
        known = election._switches.get(dpid)
        asked = _connected(election, dpid, now_s)
        if known is not None:
            election._switches[dpid] = known
        return asked

    return [
        (Election, "connected", connected),
        (Election, "disconnected", lambda *_: None),
    ]


def _confirms_before_barrier(session: Session, *steps: Any) -> Any:
    with patch.object(session, "barrier", _nothing):
        return _change_at_once(session, *steps)


def _but_one(state: UpdateState) -> Mapping[str, SwitchRules]:
    changed = dict(_begin(state))
    if len(changed) > 1:
        name = max(changed)
        del changed[name]
        state.confirm(name)
    return changed


def _short_ups() -> list[tuple[type, str, Any]]:
    came_up_s: dict[tuple[str, str, int], float] = {}

    def see_ports(switch: ObservedSwitch, ports: Mapping[int, bool]) -> None:
        now_s, before, seen = runtime.now_s(), switch.ports or {}, dict(ports)
        for port, is_up in ports.items():
            key = _process(), switch.name, port
            if is_up and not before.get(port):
                came_up_s[key] = now_s
            if not is_up and before.get(port) and now_s - came_up_s.get(key, -inf) < 1:
                seen[port] = True
        switch.ports = seen

    return [(ObservedSwitch, "see_ports", see_ports)]


def _remembered(
    takeover: Takeover, sessions: Mapping[int, Session], last: Mapping[str, SwitchRules]
) -> InheritedRules | None:
    """What switches held when this controller led before is taken for what they hold."""
    return _inherited(takeover, sessions, last) if takeover._state.update.is_fresh else None


def _late_journal() -> list[tuple[type, str, Any]]:
    late: dict[str, tuple[Operations, DesiredState]] = {}
    sent = set[str]()

    def begin(operations: Operations, desired: DesiredState) -> None:
        late[_process()] = operations, desired

    def take_step(switches: Switches, names: Iterable[str]) -> None:
        if _process() in late:
            if _process() in sent:
                _keep_begun(*late.pop(_process()))
            sent.symmetric_difference_update({_process()})
        _take_step(switches, names)

    return [(Operations, "begin", begin), (Switches, "take_step", take_step)]


def _longer_lease(election: Election, now_s: float) -> bool:
    return _has_lease(election, now_s - election.times.lease_s)


def _never_ends(scheduler: UpdateScheduler) -> None:
    _await_quiescence(scheduler)
    runtime.sleep(1e6)


def _nothing(*_: Any, **__: Any) -> None:
    """Something that happens is ignored."""


PLANTED: Mapping[str, Planted] = {
    "rules of a switch are known beyond its connection": Planted(_by_dpid("held"), "restart,cut"),
    "a single controller does not read before it writes": Planted(
        _one(Takeover, "_inherited", _nothing), "cut,kill"
    ),
    "a problem of routes stays": Planted(_one(UpdateState, "aim", _keeps_problem), aimed=tagged),
    "a step begins before all barriers": Planted(
        _one(UpdateState, "confirm", _confirms_all), aimed=stalling
    ),
    "undrained generations are left out of the proof": Planted(
        _one(UpdateState, "_task", _without_in_flight), aimed=flapping
    ),
    "quiescence is reported one round early": Planted(
        _one(StepProgress, "quiescence_rounds", _one_round_fewer), aimed=crowded
    ),
    "quiescence is reported at the first look": Planted(
        _one(CountedRounds, "see", lambda *_: True), aimed=crowded
    ),
    "rules of a takeover are used after a reconnection": Planted(
        # Else it would be put right when switches are read again.
        lambda: [*_by_dpid("contents")(), (RuleWatch, "start", _nothing)],
        aimed=emptied,
    ),
    "requests of operators are not kept": Planted(
        _one(Overrides, "save", _nothing), "engine,drain,kill"
    ),
    "a switch that connects again still counts as ours": Planted(_still_master, aimed=usurped),
    "a controller without a lease goes on": Planted(
        _one(Election, "_has_lease", lambda *_: True), aimed=parted
    ),
    "a controller leads for one lease more": Planted(
        _one(Election, "_has_lease", _longer_lease), aimed=parted
    ),
    "a successor trusts its memory": Planted(
        _one(Takeover, "_inherited", _remembered), aimed=taking_turns
    ),
    "a link that returns is ignored": Planted(_stay_failed, "cut,flap"),
    "what failures have cut is not served first": Planted(
        _one(UpdateState, "_next_goals", lambda _state, goal: (goal,)), aimed=cut_twice
    ),
    "a link that fails is ignored": Planted(_one(UpdateScheduler, "_aim", _nothing), "cut"),
    "a port that fails soon after it came up counts as up": Planted(_short_ups, aimed=bouncing),
    "switches are not read again": Planted(
        _one(RuleWatch, "start", _nothing), "rules-deleted,rules-added,full-table"
    ),
    "another switch with a dpid is taken for the first": Planted(
        _one(Switches, "_is_proven", lambda *_: True), aimed=impersonated
    ),
    "a thread is left of each wait for older frames": Planted(
        _one(UpdateScheduler, "_await_quiescence", _never_ends), "flap,cut,engine"
    ),
    "a frame of older rules is not waited for": Planted(
        _one(StepProgress, "awaits_quiescence", property(lambda _progress: False)), aimed=crowded
    ),
    "a switch counts as changed before its barrier": Planted(
        _one(Session, "change_at_once", _confirms_before_barrier), "stall,engine,drain,undrain"
    ),
    "one switch of a step is left out": Planted(_one(UpdateState, "begin", _but_one), "cut,engine"),
    "a reload is kept after its first step": Planted(_late_journal, aimed=reloaded),
}


_SEEN_S = 10.0
"""Time in which the last aimed fault must have its effect."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Run the controller with a fault meanwhile."""
    with ExitStack() as stack:
        for kind, attribute, replacement in PLANTED[name].make():
            stack.enter_context(patch.object(kind, attribute, replacement, create=True))
        yield


def found(name: str, seeds: Iterable[int]) -> tuple[int, Violation | None]:
    """Run seeds with a fault until an invariant finds it; return how many, and the violation.

    That a thread of the controller ends with an exception is not enough, nor a line of problems.
    """
    fault, number = PLANTED[name], 0
    for number, seed in enumerate(seeds, 1):
        setting, faults = replace(fault.setting, seed=seed), None
        if fault.aimed is not None:
            setting, faults = fault.aimed(seed)
        seconds = max(FAULTS_S, *(each.at_s + _SEEN_S for each in faults or ()), 0.0)
        with planted(name):
            result = run(
                setting, faults, kinds=fault.kinds.split(","), seconds=seconds, stop_at_first=True
            )
        violations = [each for each in result.violations if each.is_of_invariant]
        if violations:
            return number, violations[0]
    return number, None


def table() -> Iterator[str]:
    """Yield the table of docs/seeded-controllers.md."""
    yield "| fault | found by |"
    yield "|---|---|"
    for name in PLANTED:
        _, violation = found(name, range(1, 13))
        yield f"| {name} | {violation.kind if violation else '-'} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    for row in table():
        sys.stdout.write(row + "\n")
        sys.stdout.flush()
