"""The rules that a starting controller finds in the switches, and the goal they implement. Pure.

Another controller has left the rules, perhaps in the middle of a change. If they are those of a
goal that this controller knows, they are correct and stay. If not, they are what the next change
begins from, with proven steps; nothing is written before these are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from knotless.base.errors import RuleError
from knotless.controller.desired import DesiredState
from knotless.controller.reconcile import normal
from knotless.controller.updates.planning import Goal
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.forwarding.openflow.vlan_generations import (
    VlanGeneration,
    rules_in,
    tags_in,
    vlan_generation_of,
    vlan_generations_in,
)
from knotless.routing.graphs.channels import PRIORITIES
from knotless.routing.plan import Plan
from knotless.routing.repair import repair
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures

_NO_RULES = SwitchRules(())


@dataclass(frozen=True)
class InheritedRules:
    """The rules that switches hold, which implement ``plan``, that of ``goal``.

    ``plan`` is None if they are those of no goal that is known.
    """

    goal: Goal
    held: Generation
    plan: Plan | None


def inherited_rules(
    desired: DesiredState, failures: Failures, rules: Mapping[str, SwitchRules], fabric: Fabric
) -> InheritedRules:
    """Return what switches hold; ``rules`` are our own rules of all switches that were read.

    ``fabric`` is what exists, and ``failures`` what has failed of it: there is more than in the
    desired state while the fabric changes.

    A switch without rules, such as one that has just started, is to get those of the goal. So is
    one that was not read, if the others hold those of a goal.
    """
    there = {name: held for name, held in rules.items() if held.rules}
    failed = failures.within(desired.fabric)
    goals = dict.fromkeys([Goal(desired, failed), Goal(desired)])
    tags = desired.routed.host_tags()
    vlan_generation = vlan_generation_of(there) if there else VlanGeneration()
    for goal in goals:
        plan = _plan_of(goal)
        compiled = desired.rules if plan is desired.routed else compile_rules(plan)
        switches = desired.fabric.switches
        wanted = {switch.name: compiled.get(switch.name, _NO_RULES) for switch in switches}
        try:
            moved = dict(rules_in(wanted, vlan_generation))
        except RuleError:
            continue
        if all(_same(held, moved.get(name, _NO_RULES)) for name, held in there.items()):
            return InheritedRules(goal, Generation(moved, tags_in(tags, vlan_generation)), plan)
    unknown = {switch.name: rules.get(switch.name, _NO_RULES) for switch in fabric.switches}
    return InheritedRules(
        Goal(desired, failed), Generation(unknown, tags_in(tags, vlan_generation)), None
    )


def _plan_of(goal: Goal) -> Plan:
    if not goal.failures:
        return goal.desired.routed
    unused = goal.avoided.failures
    return repair(goal.desired.plan, unused).plan if unused else goal.desired.plan


def _same(a: SwitchRules, b: SwitchRules) -> bool:
    """Tell whether a switch holds these rules; groups are repaired with the rules."""
    return {normal(rule) for rule in a.rules} == {normal(rule) for rule in b.rules}


def adopted(wanted: Generation, name: str, rules: SwitchRules) -> Generation | None:
    """Return ``wanted`` in the VLAN generation in which the switch ``name`` holds its rules.

    An earlier controller may have changed the routes and come back to them in another generation:
    the rules are correct, and nothing is to be changed. None: the switch holds them in none.
    """
    held = _keys(rules)
    mine = wanted.rules.get(name, SwitchRules(()))
    for number in vlan_generations_in({name: rules}):
        for first in range(PRIORITIES):
            vlan_generation = VlanGeneration(number, first)
            with suppress(RuleError):
                if _keys(rules_in({name: mine}, vlan_generation)[name]) == held:
                    return Generation(
                        rules_in(dict(wanted.rules), vlan_generation),
                        tags_in(wanted.tags, vlan_generation),
                    )
    return None


def _keys(rules: SwitchRules) -> frozenset[object]:
    """Return the rules of a switch in canonical form; groups are compared with the rules."""
    return frozenset(normal(rule) for rule in rules.rules)
