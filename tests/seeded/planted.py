"""Faults of the controller that are planted on purpose: the invariants must find each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from eventlet import hubs

from knotless.controller import runtime
from knotless.controller.election.election import Election, Request
from knotless.controller.election.takeover import Takeover
from knotless.controller.openflow.session import Session
from knotless.controller.overrides import Overrides
from knotless.controller.rule_watch import RuleWatch
from knotless.controller.switches import Switches
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.progress import StepProgress
from knotless.controller.updates.quiescence import CountedRounds
from knotless.controller.updates.scheduler import UpdateScheduler
from knotless.controller.updates.state import UpdateState
from knotless.topologies.failures import Failures
from tests.seeded.in_a_row import in_a_row
from tests.seeded.known import LATER_KINDS
from tests.seeded.run import run
from tests.seeded.world import Setting, Violation

_aim, _failures, _task = UpdateState.aim, FabricState.failures, UpdateState._task
_rounds = StepProgress.quiescence_rounds
_connected = Election.connected
_await_quiescence = UpdateScheduler._await_quiescence


@dataclass(frozen=True)
class Planted:
    """Attributes of classes that are replaced, and the runs that may find it.

    ``make`` returns (class, attribute, replacement) anew for each run; ``kinds`` and
    ``controllers`` are options of ``python -m tests.seeded``. ``is_in_a_row``: the runs are those
    of :func:`tests.seeded.in_a_row.in_a_row`.
    """

    make: Callable[[], list[tuple[type, str, Any]]]
    kinds: str = ""
    controllers: int = 1
    is_in_a_row: bool = False


def _process() -> str:
    return str(hubs.get_hub().current.name)


def _by_dpid(attribute: str) -> Callable[[], list[tuple[type, str, Any]]]:
    """What is known of a connection is kept by dpid, beyond its end."""

    def make() -> list[tuple[type, str, Any]]:
        kept: dict[tuple[str, int], Any] = {}

        def read(session: Session) -> Any:
            return kept.get((_process(), session.datapath.id))

        def write(session: Session, value: Any) -> None:
            if value is not None or (_process(), session.datapath.id) not in kept:
                kept[_process(), session.datapath.id] = value

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
    "a problem of routes stays": Planted(_one(UpdateState, "aim", _keeps_problem), "flap,cut"),
    "a step begins before all barriers": Planted(_one(UpdateState, "confirm", _confirms_all)),
    "undrained generations are left out of the proof": Planted(
        _one(UpdateState, "_task", _without_in_flight), "flap,engine,stall,drain,undrain"
    ),
    "quiescence is reported one round early": Planted(
        _one(StepProgress, "quiescence_rounds", _one_round_fewer),
        "slow-frames,flap,cut,engine,drain,undrain",
    ),
    "quiescence is reported at the first look": Planted(
        _one(CountedRounds, "see", lambda *_: True)
    ),
    "rules of a takeover are used after a reconnection": Planted(
        # Else it would be put right when switches are read again.
        lambda: [*_by_dpid("contents")(), (RuleWatch, "start", _nothing)],
        "restart,kill,cut,disconnect",
    ),
    "requests of operators are not kept": Planted(
        _one(Overrides, "save", _nothing), "engine,drain,kill"
    ),
    "a switch that connects again still counts as ours": Planted(
        _still_master, "restart,hang,part,kill,cut", controllers=2
    ),
    "a controller without a lease goes on": Planted(
        _one(Election, "_has_lease", lambda *_: True), "restart,hang,part,kill,cut", controllers=2
    ),
    "a link that returns is ignored": Planted(_stay_failed, "cut,flap"),
    "what failures have cut is not served first": Planted(
        _one(UpdateState, "_next_goals", lambda _state, goal: (goal,)), is_in_a_row=True
    ),
    "a link that fails is ignored": Planted(_one(UpdateScheduler, "_aim", _nothing)),
    "switches are not read again": Planted(
        _one(RuleWatch, "start", _nothing), "rules-deleted,rules-added,full-table"
    ),
    "another switch with a dpid is taken for the first": Planted(
        _one(Switches, "_is_proven", lambda *_: True), "duplicate-dpid,disconnect,cut"
    ),
    "a thread is left of each wait for older frames": Planted(
        _one(UpdateScheduler, "_await_quiescence", _never_ends), "flap,cut,engine"
    ),
    "a frame of older rules is not waited for": Planted(
        _one(StepProgress, "awaits_quiescence", property(lambda _progress: False))
    ),
}

FIRST_SEEDS: Mapping[str, int] = {
    "a controller without a lease goes on": 10,
    "undrained generations are left out of the proof": 80,
    "a link that fails is ignored": 44,
    "another switch with a dpid is taken for the first": 12,
}
"""Where a fault is found by few seeds only: one shortly before that which finds it."""
NOT_FOUND = (
    "a problem of routes stays",
    "a switch that connects again still counts as ours",
)
"""Faults that no seed has found yet; other tests hold them."""


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
    kinds = tuple(fault.kinds.split(",")) if fault.kinds else tuple(LATER_KINDS.split(","))
    for number, seed in enumerate(seeds, 1):
        setting, faults = Setting(seed, controllers=fault.controllers), None
        if fault.is_in_a_row:
            setting, faults = in_a_row(seed)
        with planted(name):
            result = run(setting, faults, kinds=kinds, stop_at_first=True)
        violations = [e for e in result.violations if e.kind not in ("exception", "line")]
        if violations:
            return number, violations[0]
    return number, None
