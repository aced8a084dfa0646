"""A controller that starts again, whatever has failed or returned meanwhile.

The model is that of :mod:`tests.property.test_switches`. At every moment, the rules that switches
hold have no loop and no cycle of channels with all links up, and lose no pair of hosts that is
connected, unless the change that is proven drops some frames.
"""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path

import pytest

from knotless.controller import runtime
from knotless.controller.desired import DesiredState
from knotless.controller.status import Status
from knotless.controller.updates.inherited import holds_other
from knotless.controller.updates.last_rules import LastRules
from knotless.controller.updates.report import routes_as_json
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies.failures import NO_FAILURES, Failures, usable
from knotless.verification.check import check
from tests.property.test_switches import (
    DESIRED,
    FABRIC,
    TWO_LAYERS,
    Case,
    _slow_answers,
    separated_pairs,
    turns,
    verdict_of,
)
from tests.support.model_controllers import _simulated_time
from tests.support.model_switch import ModelSwitch
from tests.support.waiting import Limit

__all__ = ["_simulated_time", "_slow_answers"]
ORDERS = list(permutations(range(len(FABRIC.switches))))
PLANS = {"one layer": DESIRED[0], "two layers": TWO_LAYERS}


def held_of(switches: list[ModelSwitch]) -> dict[str, SwitchRules]:
    """Return what switches hold, by name."""
    return {FABRIC.switches[switch.dpid - 1].name: switch.held for switch in switches}


def hasty(desired: DesiredState) -> DesiredState:
    """Return the same desired state, for which a switch may be missing for a moment only."""
    config = desired.config.model_copy(update={"connect_timeout_s": 0.05})
    return DesiredState.compute(config, FABRIC)


class Restart(Case):
    """A controller that starts again; ``failures`` are those of the cables."""

    failures = NO_FAILURES
    is_served = True
    """Whether switches hold rules at the beginning that serve all pairs that are connected."""

    def check(self) -> None:
        before = len(self.checked)
        super().check()
        plan = self.state.update.progress.plan
        drops = plan is not None and plan.change.tier == 3
        if self.is_served and len(self.checked) > before and not drops:
            verdict = verdict_of(self.held, self.failures)
            assert verdict.undelivered == separated_pairs(self.failures), verdict.problems


def copy_of(switch: ModelSwitch) -> ModelSwitch:
    """Return a switch that holds the same, and has the same ports."""
    copy = ModelSwitch(switch.dpid)
    copy.rules, copy.groups = dict(switch.rules), dict(switch.groups)
    copy.ports, copy.counters = dict(switch.ports), dict(switch.counters)
    return copy


def stopped(case: Case) -> list[ModelSwitch]:
    """End a controller, and return its switches."""
    for switch in case.switches:
        case.disconnect(switch)
    case.close()
    return case.switches


def started(
    seed: int,
    desired: DesiredState,
    switches: list[ModelSwitch],
    failures: Failures,
    last_rules: LastRules | None = None,
) -> Restart:
    """Start a controller for these switches."""
    case = Restart(seed, desired=desired, last_rules=last_rules)
    case.switches, case.failures = [copy_of(switch) for switch in switches], failures
    return case


def await_kept(case: Case, state_file: Path) -> None:
    """Let things happen until the rules of all switches are in the file."""
    wanted = held_of(case.switches)
    for _ in range(2000):
        runtime.sleep(0)
        kept = LastRules.beside(state_file).read()
        if kept.keys() == wanted.keys() and not any(
            holds_other(kept[name], held) or holds_other(held, kept[name])
            for name, held in wanted.items()
        ):
            return
    raise AssertionError("the rules are not kept")


def connect_all_but(case: Restart, missing: ModelSwitch) -> None:
    """Connect the other switches, and let things happen until it goes on without this one."""
    for switch in case.switches:
        if switch is not missing:
            case.connect(switch)
    observed = case.state.observed.switches[missing.dpid]
    limit = Limit()
    while not observed.is_unread:
        limit.check(f"s{missing.dpid} is not waited for")
        assert not case.state.leads
        runtime.sleep(0)
        case.check()


def settle_without(case: Case, missing: ModelSwitch) -> bool:
    """Let things happen until the others hold the rules of the goal, without a switch.

    Return False if there are no proven steps to these as long as it may go on forwarding.
    """
    routes, name = case.state.update, FABRIC.switches[missing.dpid - 1].name
    for _ in range(2000):
        runtime.sleep(0)
        case.check()
        if routes.problem is not None:
            assert f"no proven steps as long as {name} may forward" in routes.problem
            return False
        if routes.is_there and routes.goal.failures == case.state.failures():
            assert name in routes.goal.failures.switches
            return True
    raise AssertionError(f"no routes: {routes_as_json(routes)}")


@pytest.mark.thin(4)
@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("link", range(len(FABRIC.links)))
@pytest.mark.parametrize("plan", PLANS)
def test_every_order_of_connection_is_safe(plan: str, link: int, mended: bool) -> None:
    desired, failed = PLANS[plan], FABRIC.links[link]
    case = Case(link, desired=desired)
    case.settle()
    case.cut(failed)
    case.settle()
    switches = stopped(case)
    if mended:
        case.mend()
    failures = NO_FAILURES if mended else Failures.from_names(FABRIC, [failed.name])
    for seed, order in enumerate(ORDERS):
        restart = started(seed, desired, switches, failures)
        for number in order:
            restart.connect(restart.switches[number])
            for _ in range(restart.rng.randrange(12)):
                runtime.sleep(0)
                restart.check()
        restart.settle()
        assert restart.state.update.goal.failures == failures
        assert restart.reports.kinds.count("takeover") == 1
        restart.held_as_wanted()
        restart.close()


@pytest.mark.parametrize("plan", PLANS)
def test_nothing_is_written_before_all_are_read(plan: str) -> None:
    empty = [ModelSwitch(switch.dpid) for switch in FABRIC.switches]
    case = started(1, PLANS[plan], empty, NO_FAILURES)
    case.is_served = False
    *first, last = case.switches
    for switch in first:
        case.connect(switch)
        turns(case.rng, 40)
    assert not any(switch.rules for switch in first)
    assert not any(switch.installed for switch in case.state.observed.switches.values())
    case.connect(last)
    case.settle()
    case.held_as_wanted()


@pytest.mark.thin(2)
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("plan", PLANS)
def test_the_others_do_not_wait_for_ever_for_an_empty_switch(plan: str, place: int) -> None:
    empty = [ModelSwitch(switch.dpid) for switch in FABRIC.switches]
    case = started(place, hasty(PLANS[plan]), empty, NO_FAILURES)
    case.is_served = False
    missing = case.switches[place]
    connect_all_but(case, missing)
    assert settle_without(case, missing)
    (line,) = (line for line in Status(case.state).problems(1e9) if "is not connected" in line)
    assert line.endswith("it counts as failed until its rules have been read")
    served = held_of(case.switches)
    failures = Failures.from_names(FABRIC, [case.state.desired.names[missing.dpid]])
    assert check(usable(FABRIC, failures), served).undelivered == separated_pairs(failures)
    case.connect(missing)
    case.settle()
    case.held_as_wanted()
    assert case.state.update.goal.failures == NO_FAILURES
    assert case.reports.kinds.count("takeover") == 1


@pytest.mark.thin(2)
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("plan", PLANS)
def test_one_that_comes_late_with_what_is_wanted_is_used_again(plan: str, place: int) -> None:
    case = Case(place, desired=PLANS[plan])
    case.settle()
    restart = started(place, hasty(PLANS[plan]), stopped(case), NO_FAILURES)
    restart.is_served = False  # hosts of a switch that is missing are cut off
    missing = restart.switches[place]
    connect_all_but(restart, missing)
    settle_without(restart, missing)
    restart.connect(missing)
    restart.settle()
    restart.held_as_wanted()
    assert restart.state.update.goal.failures == NO_FAILURES


@pytest.mark.thin(2)
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("plan", PLANS)
def test_one_that_comes_late_with_other_rules_has_all_read_again(plan: str, place: int) -> None:
    """It was dead when the others changed their routes."""
    seed = 3 * place  # with an emulator, which knows what is under way
    case = Case(seed, desired=PLANS[plan])
    case.settle()
    missing = case.switches[place]
    name = FABRIC.switches[place].name
    for link in FABRIC.links:
        if name in (link.a, link.b):
            case.cut(link)
    case.disconnect(missing)
    assert settle_without(case, missing)
    switches = stopped(case)
    case.mend()
    restart = started(seed, hasty(PLANS[plan]), switches, NO_FAILURES)
    restart.is_served = False  # hosts of the switch are cut off
    missing = restart.switches[place]
    before = dict(missing.rules)
    connect_all_but(restart, missing)
    settle_without(restart, missing)
    restart.connect(missing)
    while restart.reports.kinds.count("takeover") < 2:
        assert missing.rules == before
        runtime.sleep(0)
    restart.settle()
    restart.held_as_wanted()
    assert restart.state.update.goal.failures == NO_FAILURES


@pytest.mark.thin(2)
@pytest.mark.parametrize("link", range(len(FABRIC.links)))
@pytest.mark.parametrize("plan", PLANS)
def test_one_that_is_missing_may_forward_as_it_did_before(
    plan: str, link: int, tmp_path: Path
) -> None:
    file = tmp_path / "state.json"
    case = Case(link, desired=PLANS[plan], last_rules=LastRules.beside(file))
    case.settle()
    case.cut(FABRIC.links[link])
    case.settle()
    await_kept(case, file)
    switches = stopped(case)
    case.mend()
    refused = 0
    for place in range(len(switches)):
        copy = tmp_path / f"{place}.json"
        shutil.copy(tmp_path / "state-rules.json", tmp_path / f"{place}-rules.json")
        last_rules = LastRules.beside(copy)
        restart = started(3 * place, hasty(PLANS[plan]), switches, NO_FAILURES, last_rules)
        restart.is_served = False  # hosts of the switch that is missing are cut off
        missing = restart.switches[place]
        connect_all_but(restart, missing)
        refused += not settle_without(restart, missing)
        restart.connect(missing)
        restart.settle()
        restart.held_as_wanted()
        assert restart.state.update.goal.failures == NO_FAILURES
        restart.close()
    assert refused < len(switches)
