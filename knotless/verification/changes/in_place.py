"""Repairs in place: what leads to a failed part is dropped, then the new routes are installed.

Frames whose path uses a failed part are lost in any case until the routes are repaired. So entries
in which old and new routes differ first drop (*the common rules*). Then no packet can meet an old
entry and a new one for it on one path, and none can go round. Only frames that wait in a switch
since before the failure, and meet a new entry next, can make a dependency that neither the old
routes nor the new ones have, such as from a channel to the way back. These turns are dropped in
table virtual channel (*guards*) until the frames have left the fabric.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from knotless.base.errors import PlanError
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiled import CompiledRules
from knotless.forwarding.openflow.compiler import compile_state
from knotless.forwarding.openflow.rules import (
    COOKIE,
    VIRTUAL_CHANNEL,
    FabricRules,
    Field,
    Output,
    Rule,
    SwitchRules,
    match_order,
)
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, channels_of
from knotless.routing.graphs.dependencies import Edges
from knotless.routing.plan import Plan
from knotless.routing.routes import common_routes
from knotless.topologies.fabric import Fabric

PRIORITY = 0xFFFF
"""Of guards: above all others."""
_TAGGED = Field("vlan_vid", 0x1000, 0x1000)


def without_ports(rules: FabricRules, ports: Collection[tuple[str, int]]) -> FabricRules:
    """Return rules that drop what they would send to some ports, each of a switch by name.

    Groups of type 'fast failover' stay: switches do so by themselves while these ports are down.
    """
    left = dict(rules)
    for name in {name for name, _ in ports} & rules.keys():
        gone = {Output(port) for switch, port in ports if switch == name}
        held = rules[name]
        left[name] = SwitchRules(
            tuple(
                rule._replace(actions=tuple(each for each in rule.actions if each not in gone))
                for rule in held.rules
            ),
            tuple(
                group
                if group.watch
                else replace(
                    group, buckets=tuple(each for each in group.buckets if gone.isdisjoint(each))
                )
                for group in held.groups
            ),
        )
    return left


def common_rules(old: Plan, new: Plan) -> CompiledRules | None:
    """Return the rules of what two plans of a fabric have in common; None if there are none.

    They forward as both plans do, and drop packets of either plan that these treat differently.
    """
    if (old.fabric, old.multicast) != (new.fabric, new.multicast):
        return None  # their states have other destinations
    if not np.array_equal(old.pair_vlans, new.pair_vlans):
        return None
    if old.has_choices or new.has_choices:
        return None  # their routes are not all that packets may take
    routes = common_routes(old.routes, new.routes)
    if routes is None or "host" in (old.tagging, new.tagging):
        return None
    states = [state_of_plan(old), state_of_plan(new)]
    try:
        state = state_of_plan(replace(new, routes=routes), states)
        return compile_state(state, tagging=new.tagging, source_check=new.source_check)
    except PlanError:
        return None  # the tables cannot drop these packets and forward all others


def guarded(rules: FabricRules, fabric: Fabric, mixed: Edges, allowed: list[Edges]) -> FabricRules:
    """Return ``rules`` that also drop on each turn that is in ``mixed`` and not in ``allowed``.

    Edges are of each priority for itself, see
    :class:`knotless.verification.changes.proof.StepVerdict`.
    """
    allowed_rows = {edge for edges in allowed for edge in map(tuple, edges.tolist())}
    channels = channels_of(fabric)
    guards: defaultdict[str, set[Rule]] = defaultdict(set)
    for holds, requests in sorted({*map(tuple, mixed.tolist())} - allowed_rows):
        (channel, priority), out = divmod(holds, VCS_PER_CHANNEL), requests // VCS_PER_CHANNEL
        match = [
            Field("in_port", int(channels.in_port[channel])),
            Field("metadata", int(channels.out_port[out])),
            Field("vlan_pcp", priority),
            _TAGGED,
        ]
        rule = Rule(VIRTUAL_CHANNEL, PRIORITY, match_order(match), cookie=COOKIE)
        guards[channels.names[channels.head[channel]]].add(rule)
    return with_guards(rules, guards)


def guards_of(rules: FabricRules) -> Mapping[str, set[Rule]]:
    """Return the guards of each switch that has any."""
    guards = {
        name: {
            rule
            for rule in switch.rules
            if (rule.table, rule.priority, rule.cookie) == (VIRTUAL_CHANNEL, PRIORITY, COOKIE)
        }
        for name, switch in rules.items()
    }
    return {name: of_switch for name, of_switch in guards.items() if of_switch}


def with_guards(rules: FabricRules, guards: Mapping[str, set[Rule]]) -> FabricRules:
    """Return rules with guards; without any, the same object."""
    if not guards:
        return rules
    return {name: _with(rules[name], guards.get(name, set())) for name in rules}


def _with(rules: SwitchRules, guards: set[Rule]) -> SwitchRules:
    if not guards:
        return rules
    merged = sorted({*rules.rules, *guards}, key=lambda rule: rule.order)
    return SwitchRules(tuple(merged), rules.groups)
