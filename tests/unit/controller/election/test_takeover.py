"""A controller that becomes active reads all switches before it goes on."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from knotless.controller import runtime
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.election.takeover import Takeover
from knotless.controller.openflow.session import SwitchContents
from knotless.controller.reconcile import normal
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.journal import UpdateJournal
from knotless.controller.updates.last_rules import LastRules
from knotless.topologies import load
from tests.support.model_controllers import running
from tests.support.model_switch import TIMING, ModelSession, ModelSwitch
from tests.support.service_alone import nothing_requested

FABRIC = load("ring,4")
DESIRED = DesiredState.compute(Config(fabric="ring,4", engine="updown"), FABRIC)
TURNS = 200


@pytest.fixture(autouse=True)
def _takeovers_end() -> Iterator[None]:
    with running:
        yield


class Mastership:
    """One of several controllers, which all switches obey that it can reach."""

    is_sole = False

    def __init__(self, *, is_complete: bool = True, dead: Iterable[int] = ()) -> None:
        self.is_complete, self.dead = is_complete, set(dead)

    def may_change(self, dpid: int) -> bool:
        return dpid > 0


class Case:
    """A takeover of switches that hold the rules of the plan, some of which are connected."""

    def __init__(
        self, mastership: Mastership, connected: Iterable[int], timeout_s: float = 3600.0
    ) -> None:
        config = DESIRED.config.model_copy(update={"connect_timeout_s": timeout_s})
        self.state = FabricState(DesiredState.compute(config, FABRIC))
        self.state.stand_by()
        threads = runtime.Threads()
        running.callback(threads.close)
        self.takeover = Takeover(
            state=self.state,
            mastership=mastership,
            state_file=nothing_requested(self.state),
            timing=TIMING,
            journal=UpdateJournal(),
            last_rules=LastRules(),
            fit=lambda change: change(),
            threads=threads,
        )
        self.sessions: dict[int, Any] = {}
        for dpid in connected:
            self.connect(dpid)
        self.thread = threads.spawn(self.takeover.run, self.takeover.begin(), self.sessions)

    def connect(self, dpid: int) -> None:
        switch = ModelSwitch(dpid)
        rules = DESIRED.rules[DESIRED.names[dpid]]
        switch.rules = {rule.key: rule for rule in map(normal, rules.rules)}
        switch.groups = {group.group_id: group for group in rules.groups}
        rng = random.Random(dpid)  # noqa: S311 - repeatable, not secret
        connection = SimpleNamespace(dpid=dpid, is_open=True, switch=switch, rng=rng)
        self.sessions[dpid] = ModelSession(connection)

    def is_done(self) -> bool:
        for _ in range(TURNS):
            runtime.sleep(0)
        return bool(self.thread.dead)

    def unread(self) -> list[str]:
        return [each.name for each in self.state.observed.switches.values() if each.is_unread]


def test_a_goal_that_only_some_living_switches_hold_is_not_enough() -> None:
    case = Case(Mastership(), (1, 2, 3))
    assert not case.is_done()
    case.connect(4)
    assert case.is_done()
    assert case.thread.wait() == 4
    assert case.unread() == []
    assert case.state.update.goal.failures.names == ()


def test_dead_switches_are_not_waited_for() -> None:
    case = Case(Mastership(dead=[4]), (1, 2, 3))
    assert case.is_done()
    assert case.unread() == ["s4"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the controller, in seconds; it passes where a test says so only."""
    now_s = [0.0]
    monkeypatch.setattr("knotless.controller.runtime.now_s", lambda: now_s[0])
    return now_s


@pytest.mark.parametrize("is_complete", [True, False])
def test_after_a_stated_time_it_goes_on_without(is_complete: bool, clock: list[float]) -> None:
    case = Case(Mastership(is_complete=is_complete), (1, 2, 3), timeout_s=10.0)
    assert not case.is_done()
    clock[0] += 11
    assert case.is_done()
    assert case.thread.wait() == 3
    assert case.unread() == ["s4"]
    assert "s4" in case.state.failures().switches


def test_as_long_as_more_switches_come_nothing_is_late(clock: list[float]) -> None:
    case = Case(Mastership(), (), timeout_s=10.0)
    for dpid in (1, 2, 3):
        clock[0] += 9
        assert not case.is_done()
        case.connect(dpid)
    assert not case.is_done()
    clock[0] += 9
    assert not case.is_done()
    clock[0] += 1
    assert case.is_done()
    assert case.unread() == ["s4"]


def test_rules_of_no_goal_are_not_enough_while_a_switch_may_obey_another(
    clock: list[float],
) -> None:
    case = Case(Mastership(is_complete=False), (1, 2, 3), timeout_s=10.0)
    rules = case.sessions[1].connection.switch.rules
    key, rule = next(each for each in rules.items() if each[1].actions)
    rules[key] = rule._replace(actions=())
    for _ in range(3):
        assert not case.is_done()
        clock[0] += 11
    case.takeover.give_up()
    assert case.is_done()


def test_a_takeover_that_is_given_up_before_it_runs_does_nothing() -> None:
    case = Case(Mastership(), (1, 2, 3, 4))
    case.takeover.give_up()
    assert case.is_done()
    assert case.thread.wait() is None
    assert case.state.update.is_fresh


def test_a_session_that_is_replaced_while_it_is_read_is_read_again() -> None:
    case = Case(Mastership(), (1, 2, 3, 4))
    runtime.sleep(0)
    case.connect(2)
    case.sessions[2].connection.switch.restart()
    assert case.is_done()
    assert case.thread.wait() == 4
    assert case.sessions[2].contents == SwitchContents([], [])
