"""The controller against a model of switches that are slow, and lose their connections.

Every case is a random order of events: connections, their ends, reloads, ports. In the end, when
all switches are connected, every one holds exactly the rules that are wanted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from knotless.base.flow_control import FlowControl
from knotless.controller import runtime
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.reconcile import RuleChange, normal
from knotless.controller.status import Status
from knotless.controller.switches import Switches
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.last_rules import LastRules
from knotless.controller.updates.quiescence import ChannelLosses
from knotless.controller.updates.report import routes_as_json
from knotless.forwarding.openflow.rules import COOKIE, Field, Rule, SwitchRules
from knotless.topologies import load
from knotless.topologies.fabric import Link
from knotless.topologies.failures import NO_FAILURES, Failures, host_parts, usable
from knotless.verification.changes.drops import dropped_rules
from knotless.verification.check import Verdict, check
from tests.support.model_controllers import _simulated_time, running
from tests.support.model_switch import (
    DOWN,
    REFUSAL,
    TIMING,
    UP,
    ModelSession,
    ModelSwitch,
    Reports,
)
from tests.support.panics import PANIC, PanicException
from tests.support.service_alone import nothing_requested
from tests.tiers.depth import numbers_of_the_seed

__all__ = ["_simulated_time"]
Held = tuple[SwitchRules, ...]
CASES = 200
FABRIC = load("ring,4")
DESIRED = tuple(
    DesiredState.compute(Config(fabric="ring,4", settle_s=0.0, engine="updown", root=root), FABRIC)
    for root in ("s1", "s2", "s3", "s1")
) + tuple(
    DesiredState.compute(Config(fabric="ring,4", settle_s=0.0, engine="updown"), FABRIC, drained)
    for drained in (("s1:2-s2:3",), ("s3",))
)
TWO_LAYERS = DesiredState.compute(Config(fabric="ring,4", settle_s=0.0), FABRIC)
"""Of repairs of this one there is often no proof before packets of older rules have left."""
LOOKS_AHEAD = replace(TIMING, precompute=lambda packing, call, *task: packing.pack(call(*task)))
TURNS = 20
"""The most that planning, and looking at cached entries, take."""
DRAINING_TURNS = 60
"""About what packets of older rules need to leave."""


def turns(rng: random.Random, most: int = TURNS) -> None:
    """Let others run for some turns."""
    for _ in range(rng.randrange(most)):
        runtime.sleep(0)


@pytest.fixture(autouse=True)
def _slow_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Open vSwitch, and an emulator without frames, answer late."""
    rng = random.Random(1)  # noqa: S311 - repeatable, not secret

    def purge_megaflows(_directory: Path) -> list[str]:
        turns(rng)
        return []

    def ask(_emulator: Path, _what: str) -> dict[str, Any]:
        turns(rng)
        return {"channels": {}}

    monkeypatch.setattr("knotless.controller.updates.scheduler.purge_megaflows", purge_megaflows)
    monkeypatch.setattr("knotless.controller.updates.quiescence.ask", ask)


def separated_pairs(failures: Failures) -> int:
    """Return the ordered pairs of hosts that failures separate."""
    parts = host_parts(FABRIC, failures)
    return sum(a != b for a in parts for b in parts)


@lru_cache(maxsize=4096)
def verdict_of(held: Held, failures: Failures = NO_FAILURES) -> Verdict:
    """Return the verdict on what the switches hold, in the order of their dpids.

    Cases go through the same states.
    """
    names = (switch.name for switch in FABRIC.switches)
    return check(usable(FABRIC, failures), dict(zip(names, held, strict=True)))


class Case:
    """One controller and its switches; ``former`` is one that had them before, and has died."""

    def __init__(
        self,
        seed: int,
        losses: ChannelLosses | None = None,
        former: Case | None = None,
        desired: DesiredState = DESIRED[0],
        last_rules: LastRules | None = None,
    ) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self.state = FabricState(desired)
        self.reports = Reports()
        session: Any = ModelSession
        timing = replace(TIMING if seed % 8 else LOOKS_AHEAD, execute=self.execute)
        if seed % 2:
            timing = replace(timing, open_vswitch=Path("of-the-model"))
        if seed % 3 == 0:
            timing = replace(timing, emulator=Path("of-the-model"))
        self.controller = Switches(
            state=self.state,
            reporter=self.reports,
            threads=runtime.Threads(),
            state_file=nothing_requested(self.state),
            make_session=session,
            timing=timing,
            losses=losses,
            last_rules=last_rules,
        )
        running.callback(self.close)
        if former is not None:
            former.close()
        self.switches: list[ModelSwitch] = (
            former.switches if former else [ModelSwitch(one.dpid) for one in FABRIC.switches]
        )
        self.held: Held = ()
        """What the switches held at the last check."""
        self.checked: set[Held] = set()
        self.connections: dict[int, Any] = {}
        self.unnoticed: list[Any] = []
        """Connections that have ended, of which the controller hears later."""

    def close(self) -> None:
        """End the controller."""
        self.controller.close()

    def execute(self, task: Callable[..., Any], *what: Any) -> Any:
        """Call a function as a thread does: other things happen until its end is seen."""
        try:
            return task(*what)
        finally:
            turns(self.rng)

    def connect(self, switch: ModelSwitch) -> None:
        """Connect, perhaps before the end of the former connection was noticed."""
        if switch.dpid in self.connections:
            if self.rng.random() < 0.5:
                self.disconnect(switch)
            else:
                self.end_unnoticed(switch)
        connection: Any = SimpleNamespace(
            dpid=switch.dpid, is_open=True, switch=switch, rng=self.rng, ports=switch.ports
        )
        connection.close = lambda: setattr(connection, "is_open", False)
        self.connections[switch.dpid] = connection
        self.controller.connected(connection)

    def end_unnoticed(self, switch: ModelSwitch) -> None:
        """End a connection; the controller hears of it later."""
        if (connection := self.connections.pop(switch.dpid, None)) is not None:
            connection.is_open = False
            self.unnoticed.append(connection)

    def restart(self, switch: ModelSwitch) -> None:
        """Start a switch again: it connects without rules, before its end was noticed."""
        self.end_unnoticed(switch)
        switch.restart()
        self.connect(switch)

    def disconnect(self, switch: ModelSwitch) -> None:
        connection = self.connections.pop(switch.dpid, None)
        if connection is not None:
            connection.is_open = False
            self.controller.disconnected(connection)

    def set_port(self, switch: ModelSwitch, port: int, state: Any) -> None:
        switch.ports[port] = state
        connection = self.connections.get(switch.dpid)
        if connection is not None:
            self.controller.ports_changed(connection)

    def step(self) -> None:
        """Let one thing happen, and then others run for some turns."""
        switch = self.rng.choice(self.switches)
        match self.rng.randrange(7):
            case 0 | 1:
                self.connect(switch)
            case 2:
                self.disconnect(switch)
            case 3:
                self.controller.change_to(self.rng.choice(DESIRED))
            case 4:
                self.set_port(switch, self.rng.choice((2, 3)), self.rng.choice((UP, DOWN)))
            case 5 if self.unnoticed:
                late = self.unnoticed.pop(self.rng.randrange(len(self.unnoticed)))
                self.controller.disconnected(late)
            case 6:
                self.restart(switch)
        for _ in range(self.rng.randrange(8)):
            runtime.sleep(0)
            self.check()

    def cut(self, link: Link) -> None:
        """Take the carrier from a link, which loses some frames in each direction."""
        for name, port in ((link.a, link.a_port), (link.b, link.b_port)):
            switch = next(
                candidate
                for candidate in self.switches
                if self.state.desired.names[candidate.dpid] == name
            )
            received, sent = switch.counters[port]
            switch.counters[port] = received, sent + self.rng.randrange(1, 1000)
            self.set_port(switch, port, DOWN)

    def mend(self) -> None:
        """Give all ports their carrier."""
        for switch in self.switches:
            for port, state in switch.ports.items():
                if state is DOWN:
                    self.set_port(switch, port, UP)

    def check(self) -> None:
        """Whatever the switches hold at this moment cannot deadlock, and has no loop."""
        before, self.held = self.held, tuple(switch.held for switch in self.switches)
        if self.held != before and self.held not in self.checked:
            self.checked.add(self.held)
            verdict = verdict_of(self.held)
            assert verdict.acyclic
            assert not [line for line in verdict.problems if "for ever" in line]

    def settle(self) -> None:
        """Connect every switch that is not connected, until nothing happens any more."""
        for _ in range(2000):
            while self.unnoticed:
                self.controller.disconnected(self.unnoticed.pop())
            for switch in self.switches:
                connection = self.connections.get(switch.dpid)
                if connection is None or not connection.is_open:
                    self.connect(switch)
            runtime.sleep(0)
            self.check()
            routes = self.state.update
            seen = routes.goal.failures == self.state.failures()
            if (
                seen
                and self.state.observed.ready
                and routes.is_there
                and not routes.progress.in_flight
            ):
                assert routes.problem is None
                return
        raise AssertionError(
            f"not ready: {Status(self.state).problems(1e9)} {routes_as_json(routes)}"
        )

    def held_as_wanted(self) -> dict[str, SwitchRules]:
        """Return what is wanted of each switch, by name; it holds exactly that."""
        held = {}
        for switch in self.switches:
            name = self.state.desired.names[switch.dpid]
            wanted = held[name] = self.state.update.progress.wanted(name)
            assert switch.rules == {rule.key: rule for rule in map(normal, wanted.rules)}, name
            assert switch.groups == {group.group_id: group for group in wanted.groups}, name
        return held

    def settle_routes(self) -> None:
        """Let things happen until all switches hold the rules of the goal."""
        for _ in range(2000):
            runtime.sleep(0)
            self.check()
            routes = self.state.update
            if routes.is_there and routes.goal.failures == self.state.failures():
                return
        raise AssertionError(f"no routes: {routes_as_json(self.state.update)}")


@pytest.mark.thin(1)
@pytest.mark.parametrize("part", range(4))
def test_in_the_end_every_switch_holds_what_is_wanted(part: int) -> None:
    for seed in numbers_of_the_seed(range(part * CASES // 4, (part + 1) * CASES // 4)):
        case = Case(seed)
        for _ in range(case.rng.randrange(1, 25)):
            case.step()
        case.settle()
        routes, failures = case.state.update, case.state.failures()
        assert (routes.goal.failures, routes.problem) == (failures, None), f"seed {seed}"
        held = case.held_as_wanted()
        verdict = check(usable(FABRIC, failures), held)
        separated = separated_pairs(failures)
        assert (verdict.acyclic, verdict.undelivered) == (True, separated), f"seed {seed}"
        case.mend()
        case.settle()
        assert case.reports.failed == [], f"seed {seed}"
        assert case.state.observed.failures() == frozenset(), f"seed {seed}"
        case.close()


class Dropping(Case):
    """A controller that says so as long as any switch drops frames for a step."""

    def check(self) -> None:
        super().check()
        names = self.state.desired.names
        held = {names[switch.dpid]: switch.held for switch in self.switches}
        assert dropped_rules(held) <= self.state.update.progress.dropping


@pytest.mark.seeds(8)
def test_what_a_change_drops_is_reported_for_as_long_as_it_is(seed: int) -> None:
    old, new = (
        DesiredState.compute(
            Config(fabric="ring,4", flow_control=FlowControl.PAUSE, engine=engine, root=root),
            FABRIC,
        )
        for engine, root in (("updown", "s3"), ("lturn", None))
    )
    case = Dropping(seed, desired=old)
    case.settle()
    case.controller.change_to(new)
    case.settle()
    plan = case.state.update.progress.plan
    assert plan is not None
    assert plan.change.tier == 3
    (began, first), (ended, last) = case.reports.drops
    assert (began, ended) == ("dropping", "dropped")
    assert 0 < first["pairs"] <= last["pairs"] <= len(plan.change.dropped)
    assert last["seconds"] > 0
    assert case.state.update.progress.dropping == 0
    case.held_as_wanted()


@pytest.mark.seeds(8)
def test_what_follows_a_repair_whose_planning_panics_is_repaired(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fabric is not ready, and says why in one line, until there is another goal."""
    case = Case(seed)
    case.settle()
    assert case.state.ready
    first, second = FABRIC.links[0], FABRIC.links[2]

    def panic(*_what: object) -> Any:
        raise PanicException(PANIC)

    with monkeypatch.context() as patch:
        patch.setattr("knotless.controller.updates.planning.plan_change", panic)
        patch.setattr(case.state.precomputed, "find", lambda _task: None)
        case.cut(first)
        for _ in range(2000):
            runtime.sleep(0)
            if case.state.update.problem is not None:
                break
    (line,) = (line for line in Status(case.state).problems(0) if "routes stay" in line)
    assert line.startswith("the routes stay as they are: planning failed: PanicException: index")
    assert not case.state.ready
    case.mend()
    case.settle()
    case.cut(second)
    case.settle()
    assert case.state.ready
    assert routes_as_json(case.state.update)["failed"] == [second.name]
    case.held_as_wanted()


@pytest.mark.seeds(8)
def test_a_switch_that_restarts_unnoticed_gets_its_rules(seed: int) -> None:
    case = Case(seed)
    case.settle()
    switch = case.rng.choice(case.switches)
    for _ in range(2):
        case.restart(switch)
        for _ in range(TURNS):
            runtime.sleep(0)  # the end of the connection before is seen later
        case.settle()
        case.held_as_wanted()
    case.restart(switch)
    turns(case.rng)
    case.restart(switch)  # the connection before is still waiting for the switch
    case.settle()
    case.held_as_wanted()


@pytest.mark.seeds(40)
def test_a_switch_that_restarts_while_its_rules_are_read_gets_them(seed: int) -> None:
    case = Case(seed)
    case.settle()
    case.controller.stand_by()
    case.controller.lead()
    turns(case.rng)
    case.restart(case.rng.choice(case.switches))
    case.settle()
    case.held_as_wanted()


@pytest.mark.seeds(4)
def test_a_switch_that_refuses_rules_is_not_reported_as_installed(seed: int) -> None:
    case = Case(seed)
    full = case.switches[0]
    full.refuses = lambda change: isinstance(change, RuleChange) and change.rule.table == 1
    for switch in case.switches:
        case.connect(switch)
    turns(case.rng, 100)
    for _ in range(300):
        runtime.sleep(0)
    observed = case.state.observed.switches
    assert [dpid for dpid, switch in observed.items() if not switch.installed] == [full.dpid]
    assert case.reports.kinds.count("installed") == case.reports.installations == 3
    assert "ready" not in case.reports.kinds
    assert REFUSAL in observed[full.dpid].refused[0]
    full.refuses = lambda _change: False
    case.restart(full)
    case.settle()
    assert case.reports.kinds.count("installed") == case.reports.installations == 4
    assert observed[full.dpid].refused == ()


def test_a_rule_that_cannot_be_written_is_reported() -> None:
    case = Case(1)
    switch = case.switches[0]
    other = Rule(0, 7, (Field("field_8388352", 0),), cookie=COOKIE)
    switch.rules[other.key] = other
    switch.refuses = lambda change: isinstance(change, RuleChange) and change.rule == other
    case.settle()
    observed = case.state.observed.switches[switch.dpid]
    assert [rule.key for rule in observed.foreign] == [other.key]
    del switch.rules[other.key]
    case.held_as_wanted()


@pytest.mark.thin(1)
@pytest.mark.parametrize("part", range(2))
def test_links_that_fail_and_return_at_any_time_are_used_again(part: int) -> None:
    for seed in numbers_of_the_seed(range(part * CASES // 4, (part + 1) * CASES // 4)):
        case = Case(seed, desired=TWO_LAYERS)
        case.settle()
        for _ in range(3):
            case.cut(case.rng.choice(FABRIC.links))
            case.settle_routes()
            turns(case.rng, DRAINING_TURNS)
            case.mend()
            turns(case.rng)
        case.settle()
        routes = case.state.update
        assert (routes.goal.failures.names, routes.problem) == ((), None), f"seed {seed}"
        case.close()


@pytest.mark.seeds(12)
def test_a_controller_that_starts_again_knows_what_was_lost(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    case = Case(seed, ChannelLosses.beside(path))
    case.settle()
    for link in case.rng.choices(FABRIC.links, k=2):
        case.cut(link)
        case.settle()
        case.mend()
        case.settle()
    for switch in case.switches:
        case.disconnect(switch)
    kept = ChannelLosses.beside(path)
    kept.read()
    successor = Case(seed + 1, kept, case)
    successor.settle()
    successor.controller.change_to(DESIRED[2])
    successor.settle()
    assert not successor.state.update.progress.in_flight


def test_without_what_was_lost_packets_never_count_as_gone() -> None:
    case = Case(1)
    case.settle()
    case.cut(FABRIC.links[0])
    case.settle()
    case.mend()
    case.settle()
    for switch in case.switches:
        case.disconnect(switch)
    ignorant = Case(2, None, case)
    ignorant.settle()
    ignorant.controller.change_to(DESIRED[2])
    with pytest.raises(AssertionError, match="not ready"):
        ignorant.settle()


@pytest.mark.seeds(8)
def test_a_link_that_fails_while_packets_leave_is_not_waited_for(seed: int) -> None:
    case = Case(seed)
    case.settle()
    first, second = case.rng.sample(FABRIC.links, k=2)
    case.controller.change_to(DESIRED[1 + seed % 2])
    routes = case.state.update
    while not (routes.progress.in_flight and not routes.progress.waiting):
        runtime.sleep(0)
    case.cut(first)
    case.settle()
    assert routes_as_json(routes)["failed"] == [first.name]
    case.mend()
    case.settle()
    case.cut(second)
    case.settle()
    assert routes_as_json(routes)["failed"] == [second.name]
