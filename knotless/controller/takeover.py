"""What a controller that takes over finds in the switches, and where it goes on from there. Pure.

Another controller has left the rules, perhaps in the middle of a change. If they are those of a
goal that this controller knows, they are correct and stay. If not, they are what the next change
begins from, with proven steps; nothing is written before these are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from knotless.base.errors import RuleError
from knotless.controller.desired import Desired
from knotless.controller.planning import Goal
from knotless.controller.steps import normal
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.forwarding.openflow.vlan_generations import (
    VlanGeneration,
    rules_in,
    tags_in,
    vlan_generation_of,
)
from knotless.routing.plan import Plan
from knotless.routing.repair import repair
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures

_NO_RULES = SwitchRules(())


@dataclass(frozen=True)
class Found:
    """What switches hold: rules that implement ``plan``, which is that of ``goal``.

    ``plan`` is None if they are those of no goal that is known.
    """

    goal: Goal
    held: Generation
    plan: Plan | None


def found_in(
    desired: Desired, failures: Failures, rules: Mapping[str, SwitchRules], fabric: Fabric
) -> Found:
    """Return what was found; ``rules`` are our own rules of all switches that were read.

    ``fabric`` is what exists, and ``failures`` what has failed of it: there is more than in the
    desired state while the fabric changes.

    A switch without rules, such as one that has just started, is to get those of the goal. So is
    one that was not read, if the others hold those of a goal.
    """
    there = {name: of for name, of in rules.items() if of.rules}
    failed = failures.within(desired.fabric)
    goals = dict.fromkeys([Goal(desired, failed), Goal(desired)])
    tags = desired.routed.host_tags()
    plane = vlan_generation_of(there) if there else VlanGeneration()
    for goal in goals:
        plan = _plan_of(goal)
        compiled = desired.rules if plan is desired.routed else compile_rules(plan)
        wanted = {of.name: compiled.get(of.name, _NO_RULES) for of in desired.fabric.switches}
        try:
            moved = dict(rules_in(wanted, plane))
        except RuleError:
            continue
        if all(_same(of, moved.get(name, _NO_RULES)) for name, of in there.items()):
            return Found(goal, Generation(moved, tags_in(tags, plane)), plan)
    held = {of.name: rules.get(of.name, _NO_RULES) for of in fabric.switches}
    return Found(Goal(desired, failed), Generation(held, tags_in(tags, plane)), None)


def _plan_of(goal: Goal) -> Plan:
    if not goal.failures:
        return goal.desired.routed
    unused = goal.avoided.failures
    return repair(goal.desired.plan, unused).plan if unused else goal.desired.plan


def _same(a: SwitchRules, b: SwitchRules) -> bool:
    """Tell whether a switch holds these rules; groups are repaired with the rules."""
    return {normal(rule) for rule in a.rules} == {normal(rule) for rule in b.rules}
