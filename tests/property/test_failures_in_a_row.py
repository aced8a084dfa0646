"""Failures in a row: each is served from what is installed, in steps that are proven."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

from knotless.base.errors import PlanError
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.planning import UpdatePlan, UpdateTask, plan_update
from knotless.controller.updates.state import UpdateState
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.vlan_generations import rules_in, same_rules
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures, hosts_by_part, pairs_apart, usable
from knotless.verification.changes.proof import ProofContext
from knotless.verification.check import check
from tests.tiers.depth import numbers_of_the_seed

FABRICS = (
    ("torus,4,4", "auto"),
    ("torus,3,3", "updown"),
    ("mesh,3,3", "auto"),
    ("fattree2,4", "auto"),
    ("random,8,degree=3,seed=1", "auto"),
)
CASES = 200


@cache
def desired_state(spec: str, engine: str) -> DesiredState:
    return DesiredState.compute(Config(fabric=spec, engine=engine), load(spec))


class Failing:
    """The updates of a fabric of which links fail one after the other, as switches take them."""

    def __init__(self, number: int) -> None:
        self.rng = Random(number)  # noqa: S311 - repeatable, not secret
        self.desired = desired_state(*FABRICS[number % len(FABRICS)])
        self.fabric = self.desired.fabric
        self.links = [link.name for link in self.rng.sample(self.fabric.links, k=3)]
        self.update = UpdateState(self.desired)
        self.update.is_settling = True
        self.failures = NO_FAILURES
        self.confirm()

    def confirm(self) -> None:
        for switch in self.fabric.switches:
            self.update.confirm(switch.name)

    def aim(self, *links: str) -> UpdateTask | None:
        self.failures = Failures.from_names(self.fabric, links)
        self.update.aim(self.desired, self.failures)
        # What has returned counts as failed for a while, and has a carrier.
        self.update.carrying = self.update.union.failures != self.failures
        return self.update.task()

    def plan(self, *links: str) -> UpdatePlan | None:
        """Accept the plan for these failures; None if there is nothing to change, or not yet."""
        task = self.aim(*links)
        return None if task is None else self.accepted(task)

    def accepted(self, task: UpdateTask) -> UpdatePlan | None:
        """Accept the plan of a task; None if it must wait for packets, or a return would drop."""
        try:
            plan = plan_update(task)
        except PlanError:
            assert task.in_flight or task.is_optional
            self.update.refuse(task, "packets of older rules are left")
            return None
        self.judge(task, plan)
        self.update.accept(plan)
        return plan

    def judge(self, task: UpdateTask, plan: UpdatePlan) -> None:
        """Each step is acyclic, with all rules by which packets may still be in the fabric."""
        left = [*task.in_flight, task.held]
        # What has failed before lost its frames then, and no rule of a plan leads to it.
        gone = set(self.failures.names) & set(self.update.avoided.names if task.plan else ())
        possible = usable(self.fabric, Failures.from_names(self.fabric, gone))
        for number, step in enumerate(plan.change.steps):
            left.append(Generation(step.rules, step.tags, 1 if number else 1 + task.unconfirmed))
            # In place, no rule of a later step leads to a failed link.
            is_without = plan.change.in_place and number > 0
            fabric = usable(self.fabric, self.failures) if is_without else possible
            context = ProofContext(fabric, task.flow_control, plan.change.groups)
            if plan.change.drops_first and number > 0:
                # Nor is anything on it; but older packets may have crossed it before it failed.
                empty = self.failures.dead_links(possible)
                assert context.is_acyclic_without(empty, left), (number, step.action)
            else:
                assert context.judge(left).outcome.safe, (number, step.action)
            if step.await_quiescence:
                left = left[-1:]

    def take_steps(self, *, leave: bool = True) -> None:
        """Have all switches take all steps; packets of older rules ``leave`` when they must."""
        is_done = False
        while not is_done:
            self.update.purged()
            if self.update.begin():
                self.confirm()
            elif self.update.progress.awaits_quiescence and leave:
                self.update.quiescent()
            else:
                is_done = True

    def finish(self) -> None:
        self.take_steps()
        self.update.quiescent()

    def assert_all_are_served(self) -> None:
        rules = {
            switch.name: self.update.progress.wanted(switch.name) for switch in self.fabric.switches
        }
        fabric = usable(self.fabric, self.failures)
        verdict = check(fabric, rules, flow_control=self.update.flow_control)
        apart = pairs_apart(hosts_by_part(self.fabric, self.failures))
        assert (verdict.safe, verdict.undelivered) == (True, apart)


def _served(case: Failing) -> Iterator[UpdatePlan]:
    """Yield the plan for each failure that changes something; all is served after it."""
    for count in range(1, len(case.links) + 1):
        plan = case.plan(*case.links[:count])
        if plan is not None:
            yield plan
        case.finish()
        case.assert_all_are_served()


@pytest.mark.seeds(CASES, gate=10)
def test_each_failure_is_served_from_what_is_installed(seed: int) -> None:
    case = Failing(seed)
    for plan in _served(case):
        if plan.goal.serves_first and plan.repair and plan.repair.kind == "repaired":
            assert plan.repair.moved == plan.change.down[0], "those that are cut, and no others"
        assert plan.change.down[-1:] in ((), (0,))
    case.update.is_settling = False
    if case.plan(*case.links) is not None:
        case.finish()
    case.assert_all_are_served()
    assert case.plan() is not None
    case.finish()
    held, intact = case.update.in_fabric.held.rules, case.desired.rules
    assert same_rules(rules_in(intact, case.update.progress.vlan_generation), held)


def _amid_a_return(case: Failing) -> UpdatePlan | None:
    """Return how a failure is served while packets leave in the middle of a return; None: not yet.

    None of them has left since the failure before.
    """
    first, second, third = case.links
    case.plan(first)
    case.take_steps()
    case.plan(first, second)
    case.take_steps()
    case.update.is_settling = False
    case.plan(second)
    case.take_steps(leave=False)
    case.update.is_settling = True
    return case.plan(second, third)


@pytest.mark.seeds(CASES, gate=10)
def test_a_failure_amid_a_return_is_served_by_steps_that_are_proven(seed: int) -> None:
    case = Failing(seed)
    _amid_a_return(case)
    case.finish()
    case.plan(*case.links[1:])
    case.finish()
    case.assert_all_are_served()


def _before_confirmation(case: Failing) -> Iterator[bool]:
    """Yield for each further failure whether it is served before switches confirm the last step.

    A step in place is confirmed first, so these are left out.
    """
    for count in range(1, len(case.links) + 1):
        is_overtaking = bool(case.update.progress.waiting)
        task = case.aim(*case.links[:count])
        if task is None:
            return
        plan = case.accepted(task)
        if is_overtaking:
            assert 1 <= task.unconfirmed < count
            yield plan is not None
        if plan is None:
            return
        changed = case.update.begin()
        for name in sorted(changed):
            if case.rng.random() < 0.7:
                case.update.confirm(name)


@pytest.mark.seeds(CASES, gate=10)
def test_failures_are_served_before_the_step_of_the_last_one_is_confirmed(seed: int) -> None:
    case = Failing(seed)
    list(_before_confirmation(case))
    case.confirm()
    case.finish()
    case.plan(*case.links)
    case.finish()
    case.assert_all_are_served()


@pytest.mark.deep
def test_many_failures_need_not_wait_for_confirmations() -> None:
    cases = [Failing(number) for number in numbers_of_the_seed(range(CASES))]
    served = [each for case in cases for each in _before_confirmation(case)]
    assert sum(served) >= 0.4 * len(served) > 0


@pytest.mark.deep
def test_most_failures_are_served_in_one_step() -> None:
    plans = [
        plan for number in numbers_of_the_seed(range(CASES)) for plan in _served(Failing(number))
    ]
    in_one = sum(plan.change.tier <= 1 for plan in plans)
    assert in_one >= 0.95 * len(plans) > CASES


@pytest.mark.deep
def test_most_failures_are_served_although_no_packet_leaves() -> None:
    plans = list[UpdatePlan | None]()
    for number in numbers_of_the_seed(range(CASES)):
        case = Failing(number)
        for count in range(1, len(case.links) + 1):
            task = case.aim(*case.links[:count])
            if task is not None:
                plans.append(case.accepted(task))
            case.take_steps(leave=False)
    at_once = sum(plan is not None and plan.change.serves_at_once for plan in plans)
    assert at_once >= 0.9 * len(plans) > CASES


@pytest.mark.deep
def test_most_failures_amid_a_return_are_served_before_packets_leave() -> None:
    plans = [_amid_a_return(Failing(number)) for number in numbers_of_the_seed(range(CASES))]
    assert sum(plan is not None for plan in plans) >= 0.4 * CASES


@pytest.mark.deep
def test_after_ten_failures_and_returns_the_rules_are_those_of_the_plan() -> None:
    for number in range(len(FABRICS)):
        case = Failing(number)
        failed = set[str]()
        for _ in range(20):
            link = case.rng.choice(case.fabric.links).name
            failed ^= {link}
            case.update.is_settling = case.rng.random() < 0.5
            case.plan(*failed)
            case.finish()
            case.assert_all_are_served()
        case.update.is_settling = False
        case.plan()
        case.finish()
        held = case.update.in_fabric.held.rules
        assert same_rules(rules_in(case.desired.rules, case.update.progress.vlan_generation), held)
