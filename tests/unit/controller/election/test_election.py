"""The election of the active controller, on switches and controllers that fail in every way."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from knotless.controller.election.election import Election, Request, Role, Times
from tests.support.role_model import World
from tests.tiers.depth import numbers_of_the_seed

CASES, AT_ONCE = 200, 50
FAULTS_S, QUIET_S = 12.0, 25.0


@pytest.mark.thin(1)
@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_no_switch_obeys_two_controllers(first: int) -> None:
    writes = takeovers = 0
    for seed in numbers_of_the_seed(range(first, first + AT_ONCE)):
        world = World(seed, 1 + seed % 5, 2 + seed % 2, FAULTS_S)
        world.run(FAULTS_S + QUIET_S)
        assert world.overlaps() == [], seed
        leading = [
            election.election
            for election in world.controllers
            if election.election.state != "standby"
        ]
        assert [(election.state, election.is_complete) for election in leading] == [
            ("active", True)
        ], seed
        masters = [
            connection.role
            for switch in world.switches.values()
            for connection in switch.connections
        ]
        assert masters.count("master") == len(world.switches), seed
        assert masters.count("slave") == len(masters) - len(world.switches), seed
        writes += sum(len(session.writes_s) for session in world.sessions)
        takeovers += len(world.sessions)
    assert writes > 50 * AT_ONCE
    assert takeovers > 2 * AT_ONCE


def test_without_faults_the_active_controller_stays_active() -> None:
    for seed in range(20):
        world = World(seed, 4, 3, faults_s=0)
        world.run(20)
        # Two may stand for election at the start, but whoever leads goes on.
        assert world.sessions[-1].read_s < 1005, seed
        assert world.sessions[-1].writes_s[-1] > 1019, seed


DPIDS = frozenset(range(1, 6))
TIMES = Times()


class Switches:
    """Switches that obey two controllers, and answer when they are told to."""

    def __init__(self) -> None:
        self.controllers = [Election(number, 2, DPIDS, TIMES) for number in (0, 1)]
        self.generation: int | None = None
        self.master: int | None = None
        self.now_s = 100.0
        self._asked: list[tuple[int, Request]] = []
        for number, election in enumerate(self.controllers):
            for dpid in DPIDS:
                self._ask(number, election.connected(dpid, self.now_s))

    def _ask(self, number: int, requests: Iterable[Request]) -> None:
        self._asked += [(number, request) for request in requests]

    def tick(self, *numbers: int) -> None:
        """An interval passes, after which these controllers run."""
        self.now_s += TIMES.interval_s
        for number in numbers:
            self._ask(number, self.controllers[number].tick(self.now_s))

    def answer(self) -> None:
        """Answer all requests in the order in which they came."""
        asked, self._asked = self._asked, []
        for number, request in asked:
            if request.role == "master":
                self.generation, self.master = request.generation, number
            role: Role = "master" if self.master == number else "slave"
            election = self.controllers[number]
            self._ask(number, election.answered(request.dpid, role, self.generation, self.now_s))
            self._ask(number, election.settle(self.now_s))

    def run(self, seconds: float, *numbers: int) -> None:
        """Let these controllers run, and all switches answer at once."""
        for _ in range(round(seconds / TIMES.interval_s)):
            self.tick(*numbers)
            self.answer()

    @property
    def active(self) -> list[int]:
        return [one.number for one in self.controllers if one.state == "active"]


@pytest.fixture
def switches() -> Switches:
    world = Switches()
    world.run(3, 0, 1)
    assert world.active == [0]
    return world


def test_switches_that_answer_late_cause_no_takeover(switches: Switches) -> None:
    for _ in range(20):
        for _ in range(15):  # 3 s, in which they answer nobody
            switches.tick(0, 1)
        switches.answer()
        switches.run(0.4, 0, 1)
        assert switches.active == [0]
    assert switches.controllers[0].term == 1


def test_a_standby_controller_that_was_not_scheduled_takes_nothing_over(switches: Switches) -> None:
    for _ in range(20):
        switches.run(10, 0)
        switches.tick(1)  # before it has read any answer
        switches.answer()
        assert switches.active == [0]


def test_an_active_controller_that_was_not_scheduled_goes_on(switches: Switches) -> None:
    before = switches.controllers[0].term
    for _ in range(60):
        switches.tick()
    switches.tick(0)  # before it has read any answer
    switches.answer()
    switches.run(1, 0, 1)
    assert switches.active == [0]
    assert switches.controllers[0].term == before


def test_a_controller_that_is_gone_is_replaced_after_the_patience(switches: Switches) -> None:
    began_s = switches.now_s
    while switches.active != [0, 1]:
        switches.run(TIMES.interval_s, 1)
        assert switches.now_s < began_s + TIMES.patience_s + 2.5 * TIMES.interval_s
    assert switches.now_s >= began_s + TIMES.patience_s - TIMES.interval_s


def test_without_answers_the_active_controller_stops(switches: Switches) -> None:
    while switches.active:
        switches.tick(0)
        assert switches.now_s < 100 + 3 + TIMES.lease_s + 2 * TIMES.interval_s
    assert not any(switches.controllers[0].may_change(dpid, switches.now_s) for dpid in DPIDS)
    assert switches.controllers[0].why == f"most switches have not answered for {TIMES.lease_s:g} s"
