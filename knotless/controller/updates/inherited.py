"""The rules that a starting controller finds in the switches, and the goal they implement. Pure.

Another controller has left the rules, perhaps in the middle of a change. If they are those of a
goal that this controller knows, they are correct and stay. If not, they are what the next change
begins from, with proven steps; nothing is written before these are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from knotless.base.errors import KnotlessError, RuleError
from knotless.controller.desired import DesiredState
from knotless.controller.reconcile import normal
from knotless.controller.updates.planning import Goal
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import NO_RULES, Field, Output, SwitchRules, ToGroup
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
from knotless.verification.check import Verdict, check


@dataclass(frozen=True)
class InheritedRules:
    """The rules that switches hold, which implement ``plan``, that of ``goal``.

    ``plan`` is None if they are those of no goal that is known. ``is_replaced``: they are not what
    switches hold, but replace it at once, because no steps from there can be proven.
    """

    goal: Goal
    held: Generation
    plan: Plan | None
    is_replaced: bool = False
    unused: frozenset[str] | None = None
    """The links to which no rule leads, if the rules are to stay as long as only these fail."""

    @property
    def text(self) -> str:
        """The inherited rules in a sentence, for the log."""
        if self.is_replaced:
            return "rules are replaced at once, because the old or the new ones can deadlock"
        return "all is correct" if self.plan else "a change was not finished"


def inherited_rules(
    desired: DesiredState, failures: Failures, rules: Mapping[str, SwitchRules], fabric: Fabric
) -> InheritedRules:
    """Return what switches hold; ``rules`` are our own rules of all switches that were read.

    ``fabric`` is what exists, and ``failures`` what has failed of it: there is more than in the
    desired state while the fabric changes.

    A switch without rules, such as one that has just started, is to get those of the goal. So is
    one that was not read, if the others hold those of a goal; it should be among the failures.
    """
    there = {name: held for name, held in rules.items() if held.rules}
    failed = failures.within(desired.fabric)
    goals = dict.fromkeys([Goal(desired, failed), Goal(desired)])
    tags = desired.routed.host_tags()
    vlan_generation = vlan_generation_of(there) if there else VlanGeneration()
    for goal in goals:
        try:
            plan = _plan_of(goal)
        except KnotlessError:
            continue  # there is no plan for these failures
        try:
            moved = dict(rules_in(_all_rules(desired, plan), vlan_generation))
        except RuleError:
            continue
        if all(_same(held, moved.get(name, NO_RULES)) for name, held in there.items()):
            return InheritedRules(goal, Generation(moved, tags_in(tags, vlan_generation)), plan)
    unknown = {switch.name: rules.get(switch.name, NO_RULES) for switch in fabric.switches}
    return InheritedRules(
        Goal(desired, failed), Generation(unknown, tags_in(tags, vlan_generation)), None
    )


def adopted_rules(
    desired: DesiredState, failures: Failures, rules: Mapping[str, SwitchRules], fabric: Fabric
) -> InheritedRules:
    """Return what switches hold where nobody knows what operators have requested.

    ``desired`` has the configuration; the other parameters are those of :func:`inherited_rules`.
    The goal has the drained parts that the rules tell. If they are of another goal, such as of
    other options, and deliver all, they are to stay.
    """
    inherited = inherited_rules(desired, failures, rules, fabric)
    for drained in ((), *drained_by(rules, failures, desired.fabric)):
        if inherited.plan is not None:
            return inherited
        if drained != inherited.goal.desired.drained:
            try:
                other = DesiredState.compute(desired.config, desired.fabric, drained)
            except KnotlessError:
                continue
            inherited = inherited_rules(other, failures, rules, fabric)
    if inherited.plan is not None:
        return inherited
    unused = frozenset(unused_links(fabric, inherited.held.rules))
    verdict = _verdict_of(inherited, fabric)
    dead = {link.name for link in failures.dead_links(fabric)}
    is_whole = verdict.safe and not verdict.undelivered and dead <= unused
    return replace(inherited, unused=unused) if is_whole else inherited


def drained_by(
    rules: Mapping[str, SwitchRules], failures: Failures, fabric: Fabric
) -> list[tuple[str, ...]]:
    """Return what may be drained by the rules of switches: with whole switches, then links only.

    Links that have failed, or of which a switch has no rules, do not tell.
    """
    there = {name for name, held in rules.items() if held.rules}
    telling = [
        link
        for link in fabric.links
        if {link.a, link.b} <= there and link not in failures.dead_links(fabric)
    ]
    unused = unused_links(fabric, rules) & {link.name for link in telling}
    whole = set[str]()
    for switch in fabric.switches:
        own = {link.name for link in telling if switch.name in (link.a, link.b)}
        kept = 1 if fabric.hosts_at[switch.name] else 0
        if len(own & unused) > 1 and len(own - unused) <= kept:
            whole.add(switch.name)
    others = {link.name for link in telling if not {link.a, link.b} & whole} & unused
    choices = [Failures.from_names(fabric, names).names for names in (others | whole, unused)]
    return list(dict.fromkeys(choices))


def replaced_if_unsafe(inherited: InheritedRules, fabric: Fabric) -> InheritedRules:
    """Return the rules of the goal in place of inherited ones if either can deadlock.

    There are no proven steps between such rules: see
    :func:`~knotless.verification.changes.planner.plan_change`. ``fabric`` is what exists.
    """
    goal = inherited.goal
    if _verdict_of(inherited, fabric).safe and goal.desired.verdict.safe:
        return inherited
    try:
        plan = _plan_of(goal)
    except KnotlessError:  # there is no plan for these failures
        goal = Goal(goal.desired)
        plan = goal.desired.routed
    wanted = Generation(_all_rules(goal.desired, plan), plan.host_tags())
    return InheritedRules(goal, wanted, plan, is_replaced=True)


def _verdict_of(inherited: InheritedRules, fabric: Fabric) -> Verdict:
    """Return the verdict on what switches hold, under the flow control of the goal."""
    intact, held = inherited.goal.desired.plan, inherited.held
    return check(
        fabric,
        held.rules,
        flow_control=intact.flow_control,
        multicast=intact.multicast,
        tags=held.tags,
    )


def _all_rules(desired: DesiredState, plan: Plan) -> dict[str, SwitchRules]:
    """Return what each switch shall hold, also those without rules."""
    compiled = desired.rules if plan is desired.routed else compile_rules(plan)
    return {switch.name: compiled.get(switch.name, NO_RULES) for switch in desired.fabric.switches}


def _plan_of(goal: Goal) -> Plan:
    if not goal.failures:
        return goal.desired.routed
    unused = goal.avoided.failures
    return repair(goal.desired.plan, unused).plan if unused else goal.desired.plan


def _same(a: SwitchRules, b: SwitchRules) -> bool:
    """Tell whether a switch holds these rules; groups are repaired with the rules."""
    return {normal(rule) for rule in a.rules} == {normal(rule) for rule in b.rules}


def holds_other(held: SwitchRules, wanted: SwitchRules) -> bool:
    """Return whether a switch holds rules of ours that are not those wanted of it."""
    return not {normal(rule) for rule in held.rules} <= {normal(rule) for rule in wanted.rules}


def unused_links(fabric: Fabric, rules: Mapping[str, SwitchRules]) -> set[str]:
    """Return the names of the links to which no rule of any switch forwards."""
    used = {(name, port) for name, held in rules.items() for port in _ports(held)}
    return {
        link.name
        for link in fabric.links
        if not used & {(link.a, link.a_port), (link.b, link.b_port)}
    }


def _ports(held: SwitchRules) -> set[int]:
    """Return the ports to which a switch can forward: rules of them, and groups of these.

    A rule that waits for metadata which no other rule writes is never used.
    """
    written = {rule.metadata for rule in held.rules if rule.metadata is not None}
    used = [
        action
        for rule in held.rules
        if all(_is_possible(field, written) for field in rule.match)
        for action in rule.actions
    ]
    groups = {action.group_id for action in used if isinstance(action, ToGroup)}
    used += [
        action
        for group in held.groups
        if group.group_id in groups
        for bucket in group.buckets
        for action in bucket
    ]
    return {action.port for action in used if isinstance(action, Output)}


def _is_possible(field: Field, written: set[int]) -> bool:
    """Return whether a field can match if rules write these values of metadata, or leave it 0."""
    if field.name != "metadata":
        return True
    mask = (1 << 64) - 1 if field.mask is None else field.mask
    return any(value & mask == field.value & mask for value in (0, *written))
