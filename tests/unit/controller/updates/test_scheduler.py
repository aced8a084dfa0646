"""The scheduler alone: whom it has take which step, when, and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from knotless.base.errors import PlanError
from knotless.controller import runtime
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.journal import UpdateJournal
from knotless.controller.updates.last_rules import LastRules
from knotless.controller.updates.planning import UpdateTask
from knotless.controller.updates.quiescence import ChannelLosses
from knotless.controller.updates.scheduler import UpdateScheduler
from knotless.controller.updates.timing import Timing
from knotless.topologies import load
from tests.support.model_controllers import _simulated_time, running
from tests.support.model_switch import Reports

__all__ = ["_simulated_time"]
FABRIC = load("ring,4")
DESIRED = DesiredState.compute(Config(fabric="ring,4", settle_s=0.0), FABRIC)
CUT = FABRIC.links[0]


class Bench:
    """A scheduler whose switches are connected, hold the rules of the plan, and confirm by hand."""

    def __init__(
        self, execute: Callable[..., Any] = lambda function, *args: function(*args)
    ) -> None:
        self.state = FabricState(DESIRED)
        self.taken: list[set[str]] = []
        self.told: list[str] = []
        self.withdrawn = self.read = 0
        threads = runtime.Threads()
        for switch in self.state.observed.switches.values():
            switch.connect(dict.fromkeys(switch.needs, True))
            switch.installed = True
            switch.is_new = False
            self.state.update.confirm(switch.name)
        self.scheduler = UpdateScheduler(
            state=self.state,
            driver=self,
            read_counters=self._read,
            reporter=_Told(self.told),
            timing=Timing(execute=execute),
            losses=ChannelLosses(),
            journal=UpdateJournal(),
            last_rules=LastRules(),
            probes=None,
            threads=threads,
        )
        running.callback(threads.close)
        self.scheduler.start()
        self.go_on()

    def _read(self) -> Any:
        self.read += 1
        return {}

    def take_step(self, names: Iterable[str]) -> None:
        if names := set(names):
            self.taken.append(names)

    def withdraw(self) -> None:
        self.withdrawn += 1

    def see_link(self, *, up: bool) -> None:
        for name, port in ((CUT.a, CUT.a_port), (CUT.b, CUT.b_port)):
            switch = self.state.observed.by_name[name]
            switch.see_ports({**(switch.ports or {}), port: up})

    def set_link(self, *, up: bool) -> None:
        self.see_link(up=up)
        self.scheduler.compare_failures()
        self.go_on()

    def confirm(self, names: Iterable[str]) -> None:
        for name in names:
            self.state.update.confirm(name)
        self.scheduler.wake()
        self.go_on()

    def go_on(self) -> None:
        for _ in range(20):
            runtime.sleep(0)


class _Told(Reports):
    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self._told = told

    def tell(self, kind: str, **_fields: object) -> None:
        self._told.append(kind)

    def changed(self, *_: object) -> None:
        self._told.append("changed")


def test_without_a_failure_no_switch_takes_a_step() -> None:
    bench = Bench()
    bench.scheduler.wake()
    bench.go_on()
    assert bench.taken == []
    assert "changed" not in bench.told


def test_a_step_begins_only_when_all_have_confirmed_the_one_before() -> None:
    bench = Bench()
    bench.set_link(up=False)
    steps = len(bench.state.update.progress.plan.change.steps)  # type: ignore[union-attr]
    first = bench.taken[0]
    assert len(bench.taken) == 1
    assert bench.told.count("failures") == 1
    last = max(first)
    bench.confirm(first - {last})
    assert len(bench.taken) == 1
    assert "changed" not in bench.told
    bench.confirm({last})
    while len(bench.taken) < steps:
        bench.confirm(bench.taken[-1])
    bench.confirm(bench.taken[-1])
    assert len(bench.taken) == steps
    assert bench.told.count("changed") == 1
    assert bench.told.index("rerouted") < bench.told.index("changed")
    assert bench.state.outage is None


def test_many_events_are_one_report_of_failures() -> None:
    bench = Bench()
    for _ in range(3):
        bench.scheduler.compare_failures()
    bench.set_link(up=False)
    bench.scheduler.compare_failures()
    bench.go_on()
    assert bench.told.count("failures") == 1


def test_who_does_not_lead_begins_no_step() -> None:
    bench = Bench()
    bench.state.stand_by()
    bench.set_link(up=False)
    assert bench.taken == []
    assert not bench.state.update.goal.failures


def test_pairs_are_down_until_the_step_that_serves_them_is_confirmed() -> None:
    bench = Bench()
    bench.set_link(up=False)
    assert bench.state.outage is not None
    assert "served" not in bench.told
    while bench.state.update.progress.waiting:
        bench.confirm(bench.taken[-1])
    assert bench.state.outage is None
    assert bench.told.count("served") == 1


def test_a_refused_plan_is_a_problem_until_the_failure_is_over() -> None:
    def refuse(*_: object) -> None:
        raise PlanError("no order of steps could be proven for this change")

    bench = Bench(refuse)
    bench.set_link(up=False)
    assert bench.taken == []
    assert bench.state.update.problem == "no order of steps could be proven for this change"
    bench.set_link(up=True)
    assert bench.state.update.problem is None


def test_a_fault_of_planning_does_not_end_the_scheduler() -> None:
    plans = [ZeroDivisionError("a fault")]

    def execute(function: Callable[..., Any], *args: object) -> Any:
        if plans:
            raise plans.pop()
        return function(*args)

    bench = Bench(execute)
    bench.set_link(up=False)
    assert bench.taken == []
    bench.scheduler.wake()
    bench.go_on()
    assert len(bench.taken) == 1


def test_a_link_that_returns_while_steps_are_planned_has_them_planned_again() -> None:
    """Those planned first are proven for a failed link on which no frame can be."""
    carrying = list[bool]()

    def execute(function: Callable[..., Any], task: UpdateTask) -> Any:
        carrying.append(task.carrying)
        if len(carrying) == 1:
            bench.see_link(up=True)
        return function(task)

    bench = Bench(execute)
    bench.set_link(up=False)
    assert carrying == [False, True]
    assert len(bench.taken) == 1


def test_losses_of_a_link_that_returns_are_counted_before_it_is_used() -> None:
    bench = Bench()
    bench.set_link(up=False)
    while bench.state.update.progress.waiting:
        bench.confirm(bench.taken[-1])
    bench.state.update.quiescent()
    before, read = len(bench.taken), bench.read
    bench.set_link(up=True)
    assert bench.read > read
    assert len(bench.taken) == before  # no switch has told its counters
