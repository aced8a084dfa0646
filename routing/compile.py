"""From a plan to OpenFlow 1.3 rules: four tables in every switch.

- admission: a host's own untagged frames get their VLAN and first priority (with tagging by
  hosts, those in the VLAN planned for their destination get the priority); frames from other
  switches pass when their VLAN is in use; all else is counted and dropped.
- forward: (VLAN,) destination -> output port, kept in the metadata. Broadcast and multicast
  go along the tree of the source's switch, by groups.
- virtual channel: (in port, out port, priority) -> new priority.
- output: untag for a host, or send on.

Where the fabric's MACs follow :mod:`topologies.numbering`, one masked address stands for all
hosts of a switch; otherwise there is one rule for each host.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter

import numpy as np

from routing.broadcast import broadcast_rules
from routing.collector import collector_paused
from routing.matches import (
    TAGGED,
    UNTAGGED,
    VLAN_PRESENT,
    Addresses,
    make_rule,
    switch_addresses,
    vlan_ranges,
)
from routing.plan import Plan, distinct_rows
from routing.rules import (
    ADMISSION,
    FORWARD,
    OUTPUT,
    VIRTUAL_CHANNEL,
    Action,
    FabricRules,
    Field,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
)
from topologies.errors import PlanError
from topologies.fabric import Fabric, Host
from topologies.numbering import mac_value

LINK_LOCAL = Field("eth_dst", 0x0180C2000000, 0xFFFFFFFFFFF0)
"""MAC control (PAUSE, PFC), LLDP and their kin: never forwarded (IEEE 802.1Q, 8.6.3)."""

INNER_TAGS = (Field("eth_type", 0x8100), Field("eth_type", 0x88A8))
"""What follows the outer tag of a frame that has two: 802.1Q or 802.1ad. Where hosts tag, the outer
one may be the planned one; the inner one, admitted by no rule, would reach the destination."""


@collector_paused()
def compile_rules(plan: Plan) -> FabricRules:
    """Return the rules of every switch, in the order of the fabric's switches.

    Raises
    ------
    PlanError
        The plan changes virtual channels in a way that (in port, out port, priority) does not
        determine, so that the tables cannot express it.

    """
    fabric = plan.fabric
    fabric.refuse_hub("given rules")
    addresses = switch_addresses(fabric)
    forward = _forward(plan, addresses)
    changes = _priority_changes(plan)
    first = _first_tags(plan, addresses)
    broadcast = broadcast_rules(plan, addresses)
    rules: FabricRules = {}
    for i, switch in enumerate(fabric.switches):
        made = [
            *_admission(plan, i, first),
            *_local(fabric, switch.name),
            *forward[i],
            *broadcast[i].rules,
            *changes[i],
            *_output(fabric, switch.name),
            make_rule(FORWARD, 0, ()),
            make_rule(VIRTUAL_CHANNEL, 0, (), goto=OUTPUT),
            make_rule(OUTPUT, 0, ()),
        ]
        made.sort(key=attrgetter("order"))
        rules[switch.name] = SwitchRules(tuple(made), broadcast[i].groups)
    return rules


Tag = tuple[int, int]
"""VLAN and priority."""


@dataclass(frozen=True)
class FirstTags:
    """How frames of each row are tagged at first: as a rule, and to destinations that differ."""

    usual: list[Tag]
    others: Mapping[int, list[tuple[Field, Tag]]]


def _first_tags(plan: Plan, addresses: Addresses) -> FirstTags:
    """Return the VLAN and the priority with which frames of each row go on from admission."""
    routes = plan.routes
    usual = [(vlan, 0) for vlan in plan.vlans.tolist()]
    others: dict[int, list[tuple[Field, Tag]]] = defaultdict(list)
    if routes.channels.shape[2] == 0:
        return FirstTags(usual, others)
    taken = (routes.channels[:, :, 0] >= 0) & (plan.receivers > 0)[None, :]
    for row, (vlan, _) in enumerate(usual):
        priorities, vlans = routes.priorities[row, :, 0], plan.pair_vlans[row]
        if not taken[row].any():
            continue
        priority = int(np.bincount(priorities[taken[row]]).argmax())
        usual[row] = (vlan, priority)
        differs = taken[row] & ((priorities != priority) | (vlans != vlan))
        for d in np.flatnonzero(differs).tolist():
            tag = (int(vlans[d]), int(priorities[d]))
            others[row] += [(Field("eth_dst", value, mask), tag) for value, mask in addresses[d]]
    return FirstTags(usual, others)


def _admission(plan: Plan, switch: int, first: FirstTags) -> Iterator[Rule]:
    name = plan.fabric.switches[switch].name
    admit = _admit_tagged if plan.tagging == "host" else _admit_untagged
    yield make_rule(ADMISSION, 500, (LINK_LOCAL,))
    if plan.tagging == "host":
        for inner in INNER_TAGS:
            yield make_rule(ADMISSION, 500, (TAGGED, inner))
    for port, host in plan.fabric.hosts_at[name].items():
        row = int(plan.routes.rows[plan.fabric.host_index[host.name]])
        own = (Field("in_port", port), Field("eth_src", mac_value(host.mac)))
        yield from admit(own, first.usual[row], first.others.get(row, ()))
        unwanted = UNTAGGED if plan.tagging == "host" else TAGGED
        yield make_rule(ADMISSION, 200, (Field("in_port", port), unwanted))
        yield make_rule(ADMISSION, 100, (Field("in_port", port),))
    for port in plan.fabric.neighbours[name]:
        for vlan_range in vlan_ranges(plan.vlan_count):
            yield make_rule(ADMISSION, 300, (Field("in_port", port), vlan_range), goto=FORWARD)
    yield make_rule(ADMISSION, 0, ())


def _admit_untagged(
    own: tuple[Field, ...], usual: Tag, others: Iterable[tuple[Field, Tag]]
) -> Iterator[Rule]:
    """Yield the rules that put a host's frames into its VLAN."""

    def tag(vlan: int, priority: int) -> tuple[Action, ...]:
        vid = SetField("vlan_vid", VLAN_PRESENT | vlan)
        return PushVlan(), vid, SetField("vlan_pcp", priority)

    yield make_rule(ADMISSION, 300, (*own, UNTAGGED), tag(*usual), goto=FORWARD)
    for to, other in others:
        yield make_rule(ADMISSION, 400, (*own, UNTAGGED, to), tag(*other), goto=FORWARD)


def _admit_tagged(
    own: tuple[Field, ...], usual: Tag, others: Iterable[tuple[Field, Tag]]
) -> Iterator[Rule]:
    """Yield the rules that let a host's frames pass in the VLAN that is theirs, and no other.

    In another one they would take paths that nobody has checked.
    """

    def admitted(priority: int, tag: Tag, *to: Field) -> Rule:
        vid = Field("vlan_vid", VLAN_PRESENT | tag[0])
        change = (SetField("vlan_pcp", tag[1]),)
        return make_rule(ADMISSION, priority, (*own, *to, vid), change, goto=FORWARD)

    yield admitted(300, usual)
    for to, tag in others:
        yield admitted(400, tag, to)
        if tag[0] != usual[0]:
            yield make_rule(ADMISSION, 350, (*own, to))


def _local(fabric: Fabric, name: str) -> Iterator[Rule]:
    for port, host in fabric.hosts_at[name].items():
        to_host = (Field("eth_dst", mac_value(host.mac)),)
        yield make_rule(FORWARD, 400, to_host, metadata=port, goto=VIRTUAL_CHANNEL)


def _forward(plan: Plan, addresses: Addresses) -> list[list[Rule]]:
    """Return each switch's rules towards the other switches.

    Where all VLANs that come by agree on a destination, one rule without a VLAN does; else
    the commonest next hop has it, and the VLANs that differ have rules above it. No frame
    is seen at a switch in a VLAN whose paths do not come by, so the rest does not matter.
    """
    channels, paths = plan.channels, plan.routes.channels
    row, destination, hop = np.nonzero(paths >= 0)
    channel = paths[row, destination, hop]
    wanted = distinct_rows(
        channels.tail[channel], destination, plan.pair_vlans[row, destination], channel
    )
    by_cell: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for switch, d, vlan, c in wanted:
        by_cell[switch, d].append((vlan, c))
    ports = channels.out_port.tolist()

    @cache
    def towards(d: int, port: int, vlan: int | None = None) -> list[Rule]:
        """Return the rules that send to a switch by ``port``; many switches have the same."""
        priority, of_vlan = 200, []
        if vlan is not None:
            priority, of_vlan = 300, [Field("vlan_vid", VLAN_PRESENT | vlan)]
        matches = ([*of_vlan, Field("eth_dst", *address)] for address in addresses.get(d, ()))
        return [
            make_rule(FORWARD, priority, match, metadata=port, goto=VIRTUAL_CHANNEL)
            for match in matches
        ]

    rules: list[list[Rule]] = [[] for _ in channels.names]
    for (switch, d), choices in by_cell.items():
        usual = choices[0][1]
        if len(choices) > 1:
            usual = Counter(c for _, c in choices).most_common(1)[0][0]
        rules[switch] += towards(d, ports[usual])
        for vlan, c in choices:
            if c != usual:
                rules[switch] += towards(d, ports[c], vlan)
    return rules


def _priority_changes(plan: Plan) -> list[list[Rule]]:
    """Return each switch's rules that change the virtual channel.

    Raises
    ------
    PlanError
        One (in port, out port, priority) would have to become two priorities.

    """
    channels, routes = plan.channels, plan.routes
    if not routes.priorities.any():
        return [[] for _ in channels.names]
    used = (plan.receivers > 0)[None, :, None]
    turning = (routes.channels[:, :, 1:] >= 0) & used
    before, after = routes.channels[:, :, :-1][turning], routes.channels[:, :, 1:][turning]
    was, becomes = routes.priorities[:, :, :-1][turning], routes.priorities[:, :, 1:][turning]
    rules: list[list[Rule]] = [[] for _ in channels.names]
    seen: dict[tuple[int, int, int], int] = {}
    for a, b, p, q in distinct_rows(before, after, was, becomes):
        switch = int(channels.tail[b])
        in_port, out_port = int(channels.in_port[a]), int(channels.out_port[b])
        if seen.setdefault((a, b, p), q) != q:
            raise PlanError(
                f"{channels.names[switch]}: frames from port {in_port} to port {out_port} on"
                f" priority {p} would have to go on as both {seen[a, b, p]} and {q}"
            )
        if p != q:
            match = (
                Field("in_port", in_port),
                Field("metadata", out_port),
                TAGGED,
                Field("vlan_pcp", p),
            )
            change = (SetField("vlan_pcp", q),)
            rules[switch].append(make_rule(VIRTUAL_CHANNEL, 100, match, change, goto=OUTPUT))
    return rules


def _output(fabric: Fabric, name: str) -> Iterator[Rule]:
    hosts: dict[int, Host] = dict(fabric.hosts_at[name])
    for port in hosts:
        back = (Field("in_port", port), Field("metadata", port))
        yield make_rule(OUTPUT, 200, back)
        to_host = (Field("metadata", port), TAGGED)
        yield make_rule(OUTPUT, 100, to_host, (PopVlan(), Output(port)))
    for port in fabric.neighbours[name]:
        yield make_rule(OUTPUT, 100, (Field("metadata", port),), (Output(port),))
