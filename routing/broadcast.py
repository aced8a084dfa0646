"""Rules for broadcast and multicast: once along the tree of the source's switch.

The trees are the engine's, so broadcasts take the same virtual channels as unicast and
close no cycle that :func:`routing.verdict.check` would not see. A multicast group takes the
part of each tree that leads to its members, and so none that broadcasts do not take.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache

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
from routing.trees import pruned
from topologies.fabric import Host

GROUP_ADDRESS = Field("eth_dst", 0x010000000000, 0x010000000000)
"""The bit that broadcast and multicast addresses have, and hosts' own have not."""

Bucket = tuple[Action, ...]
Copies = tuple[Bucket, ...]
"""What one switch does with a broadcast: one bucket for each copy."""
Onward = tuple[tuple[int, int], ...]
"""By which port and with which priority copies leave to further switches."""


def broadcast_rules(plan: Plan, addresses: Addresses) -> list[SwitchRules]:
    """Return each switch's rules and groups for broadcast and multicast.

    What comes in by one port mostly goes out by the same ones wherever it comes from: one
    rule by in port says so, and sources that differ have rules above it. Groups that were
    declared have such rules above those for all other group addresses.
    """
    flood = _Flood(plan, addresses, GROUP_ADDRESS, plan.fabric.hosts, 200)
    floods = [flood]
    for group in plan.multicast:
        to = Field("eth_dst", group.address)
        members = [plan.fabric.hosts[plan.fabric.host_index[name]] for name in group.members]
        floods.append(_Flood(plan, addresses, to, members, 500))
    return [
        _with_groups([wanted for flood in floods for wanted in flood.of_switch(switch)])
        for switch in range(len(plan.channels.names))
    ]


Wanted = tuple[int, tuple[Field, ...], Copies]
"""A rule to be: its priority, its match, and the copies it makes."""


class _Flood:
    """What is sent to one address, or to all of a kind, and goes to ``members``.

    Its rules have ``priority``, and 100 more where the source matters too.
    """

    def __init__(
        self, plan: Plan, addresses: Addresses, to: Field, members: Sequence[Host], priority: int
    ) -> None:
        self._plan, self._addresses, self._to, self._priority = plan, addresses, to, priority
        self._ports: list[set[int]] = [set() for _ in plan.channels.names]
        for host in members:
            self._ports[plan.fabric.switch_index[host.switch]].add(host.port)
        wanted = np.array([bool(ports) for ports in self._ports])
        self._trees = pruned(plan.channels, plan.routes.tree_channels, wanted)
        self._onward = self._copies_onward()

    def _copies_onward(self) -> list[dict[int, Onward]]:
        """Return for each switch {source switch: where copies leave to further switches}."""
        channels, trees = self._plan.channels, self._trees
        leaving: list[dict[int, list[tuple[int, int]]]] = [
            defaultdict(list) for _ in channels.names
        ]
        sources, targets = np.nonzero(trees >= 0)
        entering = trees[sources, targets]
        priorities = self._plan.routes.tree_priorities[sources, targets]
        order = np.lexsort((entering, sources))
        columns = zip(
            sources[order].tolist(),
            channels.tail[entering[order]].tolist(),
            channels.out_port[entering[order]].tolist(),
            priorities[order].tolist(),
            strict=True,
        )
        for source, switch, port, priority in columns:
            leaving[switch][source].append((port, priority))
        return [{source: tuple(ways) for source, ways in of.items()} for of in leaving]

    def of_switch(self, switch: int) -> list[Wanted]:
        """Return the rules that ``switch`` needs."""
        fabric, trees, onward = self._plan.fabric, self._trees, self._onward[switch]
        to_host = {port: (PopVlan(), Output(port)) for port in sorted(self._ports[switch])}
        wanted: list[Wanted] = []
        for port in fabric.hosts_at[fabric.switches[switch].name]:
            others = tuple(copy for other, copy in to_host.items() if other != port)
            copies = others + _copies(onward.get(switch, ()))
            wanted.append(self._rule(0, copies, Field("in_port", port)))
        everyone = tuple(to_host.values())
        by_port: dict[int, dict[int, Onward]] = defaultdict(dict)
        sources = np.nonzero(trees[:, switch] >= 0)[0]
        in_ports = self._plan.channels.in_port[trees[sources, switch]]
        for source, in_port in zip(sources.tolist(), in_ports.tolist(), strict=True):
            by_port[in_port][source] = onward.get(source, ())
        for in_port, by_source in sorted(by_port.items()):
            usual = Counter(by_source.values()).most_common(1)[0][0]
            came = Field("in_port", in_port)
            wanted.append(self._rule(0, everyone + _copies(usual), came))
            for source, ways in by_source.items():
                if ways != usual:
                    copies = everyone + _copies(ways)
                    wanted += [
                        self._rule(100, copies, came, Field("eth_src", value, mask))
                        for value, mask in self._addresses[source]
                    ]
        return wanted

    def _rule(self, above: int, copies: Copies, *match: Field) -> Wanted:
        return self._priority + above, (*match, self._to, TAGGED), copies


@lru_cache(maxsize=1024)
def _copies(onward: Onward) -> Copies:
    return tuple((SetField("vlan_pcp", priority), Output(port)) for port, priority in onward)


def _with_groups(wanted: list[Wanted]) -> SwitchRules:
    """Give each different list of copies a group, numbered from 1 in order of first use."""
    numbers: dict[Copies, int] = {}
    rules: list[Rule] = []
    for priority, match, copies in wanted:
        if copies:
            group = numbers.setdefault(copies, len(numbers) + 1)
            actions: tuple[Action, ...] = (ToGroup(group),)
        else:
            actions = ()
        rules.append(make_rule(FORWARD, priority, match, actions))
    groups = tuple(Group(number, copies) for copies, number in numbers.items())
    return SwitchRules(tuple(rules), groups)
