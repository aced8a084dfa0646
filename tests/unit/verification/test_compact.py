"""Steps of a change that share the rules that stay the same."""

from __future__ import annotations

from knotless.controller.reconcile import difference
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.rules import Rule, SwitchRules
from knotless.routing.plan import make_plan
from knotless.routing.repair import repair
from knotless.topologies import load
from knotless.topologies.failures import Failures, usable
from knotless.verification.changes.change import Change, Installed, compact
from knotless.verification.changes.planner import plan_change


def _change() -> Change:
    plan = make_plan(load("torus,4,4,hosts=4"))
    failures = Failures.from_names(plan.fabric, [plan.fabric.links[0].name])
    rules, fabric = dict(compile_rules(plan)), usable(plan.fabric, failures)
    before = Installed(fabric, rules, plan.flow_control, plan=plan)
    return plan_change(before, repair(plan, failures).plan)


def _copied(rules_now: SwitchRules) -> SwitchRules:
    return SwitchRules(tuple(Rule(*rule) for rule in rules_now.rules), rules_now.groups)


def test_steps_share_the_rules_that_stay_the_same() -> None:
    change = _change()
    held, kept, new = change.before.rules, 0, 0
    for small, step in zip(compact(change).steps, change.steps, strict=True):
        assert small.rules == dict(step.rules)
        for name, rules_now in small.rules.items():
            assert (rules_now is held[name]) == (rules_now == held[name])
            before = {rule.key: rule for rule in held[name].rules}
            for rule in rules_now.rules:
                is_kept = before.get(rule.key) == rule
                assert (before.get(rule.key) is rule) == is_kept
                kept, new = kept + is_kept, new + (not is_kept)
        held = small.rules
    assert kept > new > 0


def test_what_is_shared_makes_no_difference_to_the_changes_of_a_switch() -> None:
    small = compact(_change())
    held = small.before.rules
    changed = 0
    for step in small.steps:
        for name, rules_now in step.rules.items():
            changes = difference(held[name], rules_now)
            assert changes == difference(held[name], _copied(rules_now))
            changed += bool(changes.steps)
        held = step.rules
    assert changed > 0
