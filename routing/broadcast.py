"""Rules for broadcast and multicast: once along the tree of the source's switch, to every host.

The trees are the engine's, so broadcasts take the same virtual channels as unicast and
close no cycle that :func:`routing.verdict.check` would not see.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from routing.matches import TAGGED, Addresses, make_rule
from routing.plan import Plan
from routing.rules import (
    FORWARD,
    Action,
    Field,
    Group,
    Output,
    PopVlan,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
)

GROUP_ADDRESS = Field("eth_dst", 0x010000000000, 0x010000000000)
"""The bit that broadcast and multicast addresses have, and hosts' own have not."""

Bucket = tuple[Action, ...]
Copies = tuple[Bucket, ...]
"""What one switch does with a broadcast: one bucket for each copy."""


def broadcast_rules(plan: Plan, addresses: Addresses) -> list[SwitchRules]:
    """Return each switch's rules and groups for broadcast and multicast.

    What comes in by one port mostly goes out by the same ones wherever it comes from: one
    rule by in port says so, and sources that differ have rules above it.
    """
    onward = _onward(plan)
    return [_of_switch(plan, switch, onward[switch], addresses) for switch in range(len(onward))]


def _onward(plan: Plan) -> list[dict[int, Copies]]:
    """Return for each switch {source switch: copies to further switches}."""
    channels, trees = plan.channels, plan.routes.tree_channels
    copies: list[dict[int, list[Bucket]]] = [defaultdict(list) for _ in channels.names]
    sources, targets = np.nonzero(trees >= 0)
    entering = trees[sources, targets]
    priorities = plan.routes.tree_priorities[sources, targets]
    order = np.lexsort((entering, sources))
    columns = zip(
        sources[order].tolist(), entering[order].tolist(), priorities[order].tolist(), strict=True
    )
    for source, c, priority in columns:
        out = Output(int(channels.out_port[c]))
        copies[channels.tail[c]][source].append((SetField("vlan_pcp", priority), out))
    return [{source: tuple(made) for source, made in of.items()} for of in copies]


def _of_switch(
    plan: Plan, switch: int, onward: dict[int, Copies], addresses: Addresses
) -> SwitchRules:
    fabric, trees = plan.fabric, plan.routes.tree_channels
    ports = list(fabric.hosts_at[fabric.switches[switch].name])
    to_host = {port: (PopVlan(), Output(port)) for port in ports}
    wanted: list[tuple[int, tuple[Field, ...], Copies]] = []
    for port in ports:
        others = tuple(to_host[other] for other in ports if other != port)
        wanted.append((200, (Field("in_port", port),), others + onward.get(switch, ())))
    everyone = tuple(to_host.values())
    by_port: dict[int, dict[int, Copies]] = defaultdict(dict)
    for source in np.nonzero(trees[:, switch] >= 0)[0].tolist():
        in_port = int(plan.channels.in_port[trees[source, switch]])
        by_port[in_port][source] = everyone + onward.get(source, ())
    for in_port, by_source in sorted(by_port.items()):
        usual = Counter(by_source.values()).most_common(1)[0][0]
        wanted.append((200, (Field("in_port", in_port),), usual))
        for source, copies in by_source.items():
            if copies != usual:
                wanted += [
                    (300, (Field("in_port", in_port), Field("eth_src", value, mask)), copies)
                    for value, mask in addresses[source]
                ]
    return _with_groups(wanted)


def _with_groups(wanted: list[tuple[int, tuple[Field, ...], Copies]]) -> SwitchRules:
    """Give each different list of copies a group, numbered from 1 in order of first use."""
    numbers: dict[Copies, int] = {}
    rules: list[Rule] = []
    for priority, match, copies in wanted:
        if copies:
            group = numbers.setdefault(copies, len(numbers) + 1)
            actions: tuple[Action, ...] = (ToGroup(group),)
        else:
            actions = ()
        rules.append(make_rule(FORWARD, priority, (*match, GROUP_ADDRESS, TAGGED), actions))
    groups = tuple(Group(number, copies) for copies, number in numbers.items())
    return SwitchRules(tuple(rules), groups)
