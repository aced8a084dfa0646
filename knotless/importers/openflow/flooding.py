"""Rules of Open vSwitch that send to NORMAL, FLOOD or ALL, as rules that name their ports.

NORMAL is the learning switch of Open vSwitch: it sends to the port where an address was learned,
and floods frames for other addresses. ALL is every port; FLOOD and NORMAL leave out those that a
controller (NO_FLOOD) or spanning tree excludes.

References
----------
OpenFlow 1.3, 4.5 (reserved ports); ovs-actions(7), output to reserved ports.

"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from operator import attrgetter

from knotless.forwarding.openflow.ofctl_parser import TOP_PRIORITY
from knotless.forwarding.openflow.rules import (
    ALL,
    FLOOD,
    NORMAL,
    Action,
    Field,
    Output,
    Rule,
    SwitchRules,
    match_order,
)
from knotless.routing.graphs.channels import End
from knotless.topologies.numbering import mac_value

_RESERVED = (NORMAL, FLOOD, ALL)


@dataclass(frozen=True)
class Flooder:
    """The settings that decide where a switch floods.

    ``ports`` are those with a cable or a host. ``not_flooded`` are left out; None: it is not known
    which, so all may be flooded. ``blocked`` ports neither send nor receive. ``learned`` has (port,
    VLAN, MAC); None: it was not read. With ``in_loop``, cables between learning switches close a
    loop through this one.
    """

    ports: AbstractSet[int]
    not_flooded: AbstractSet[int] | None
    blocked: AbstractSet[int]
    learned: Sequence[tuple[int, int, str]] | None
    in_loop: bool = False


@dataclass(frozen=True)
class NamedPorts:
    """Rules in which all ports are numbers; their priorities are twice the former ones, or more.

    ``unread`` are the rules of which this is not possible, without actions. ``faults`` say why.
    ``unsure`` says which rules flood no port more than they name, but perhaps fewer; these are
    unread as well.
    """

    rules: SwitchRules
    unread: tuple[Rule, ...]
    faults: tuple[str, ...]
    unsure: tuple[str, ...]


def sends_to(actions: Sequence[Action], ports: Collection[int]) -> bool:
    """Tell whether actions have an output to one of ``ports``."""
    return any(isinstance(action, Output) and action.port in ports for action in actions)


def names_reserved(rules: SwitchRules) -> bool:
    """Tell whether a rule or group sends to NORMAL, FLOOD or ALL."""
    lists = [rule.actions for rule in rules.rules]
    lists += [bucket for group in rules.groups for bucket in group.buckets]
    return any(sends_to(actions, _RESERVED) for actions in lists)


def name_ports(rules: SwitchRules, unread: Sequence[Rule], switch: Flooder) -> NamedPorts:
    """Return the rules of a switch, and those ``unread``, with numbers of ports that are in use."""
    doubled = [_doubled(rule) for rule in rules.rules]
    named: list[Rule] = []
    left = [_doubled(rule) for rule in unread]
    faults: dict[str, None] = {}
    unsure: dict[str, None] = {}
    for rule in doubled:
        fault = _fault(rule, doubled, switch) if sends_to(rule.actions, (NORMAL,)) else ""
        if fault:
            faults[fault] = None
            left.append(rule._replace(actions=()))
            continue
        if sends_to(rule.actions, (NORMAL,)):
            named += _to_learned(rule, switch)
            if switch.in_loop:
                faults["NORMAL floods in a loop of cables; which ports spanning tree blocks"] = None
                left.append(rule._replace(actions=()))
                continue
        if sends_to(rule.actions, (NORMAL, FLOOD)) and switch.not_flooded is None:
            unsure["which ports are flooded: its dump-ports-desc"] = None
            left.append(rule._replace(actions=()))
        named.append(rule._replace(actions=_named(rule.actions, switch)))
    groups = []
    for group in rules.groups:
        if any(sends_to(bucket, (NORMAL,)) for bucket in group.buckets):
            faults[f"group {group.group_id} sends to NORMAL, which only rules are read to do"] = (
                None
            )
            continue
        buckets = tuple(_named(bucket, switch) for bucket in group.buckets)
        if buckets != group.buckets and switch.not_flooded is None:
            faults["which ports groups flood: its dump-ports-desc"] = None
        groups.append(replace(group, buckets=buckets))
    named += [
        Rule(0, 2 * TOP_PRIORITY, (Field("in_port", port),)) for port in sorted(switch.blocked)
    ]
    ordered = SwitchRules(tuple(sorted(named, key=attrgetter("order"))), tuple(groups))
    return NamedPorts(ordered, tuple(left), tuple(faults), tuple(unsure))


def _doubled(rule: Rule) -> Rule:
    """Return a rule with room for another one between it and the next higher priority."""
    return rule._replace(priority=2 * rule.priority)


def _named(actions: Sequence[Action], switch: Flooder) -> tuple[Action, ...]:
    """Return actions that name the ports to which they flood."""
    every = sorted(switch.ports - switch.blocked)
    flooded = [port for port in every if port not in (switch.not_flooded or ())]
    named: list[Action] = []
    for action in actions:
        if isinstance(action, Output) and action.port in _RESERVED:
            named += map(Output, every if action.port == ALL else flooded)
        elif not (isinstance(action, Output) and action.port in switch.blocked):
            named.append(action)
    return tuple(named)


def _fault(rule: Rule, others: Sequence[Rule], switch: Flooder) -> str:
    """Return why it is not known what a rule does that sends to NORMAL; empty if it is."""
    if switch.learned is None:
        return "NORMAL needs the addresses that were learned: ovs-appctl fdb/show"
    if any(vlan for _, vlan, _ in switch.learned):
        return "NORMAL forwards in VLANs, and the tags of ports are in no dump"
    if not all(isinstance(action, Output) for action in rule.actions):
        return "NORMAL after actions that change a frame"
    if any(name == "vlan_vid" and value != 0 for name, value, _ in rule.match):
        return "NORMAL for tagged frames, and the tags of ports are in no dump"
    places: dict[str, int] = {}
    for port, _, mac in switch.learned:
        if places.setdefault(mac, port) != port:
            return f"{mac} was learned on the ports {places[mac]} and {port}"
    same = (
        other
        for other in others
        if (other.table, other.priority) == (rule.table, rule.priority)
        and other.actions != rule.actions
    )
    if any(not _disjoint(rule, other) for other in same):
        return "NORMAL beside another rule of the same priority"
    return ""


def _disjoint(rule: Rule, other: Rule) -> bool:
    """Tell whether no frame can match both, because a field of theirs has different values."""
    values = {name: value for name, value, mask in rule.match if mask is None}
    return any(
        mask is None and values.get(name, value) != value for name, value, mask in other.match
    )


def _to_learned(rule: Rule, switch: Flooder) -> Iterator[Rule]:
    """Yield a rule that sends to NORMAL for each address that was learned, which outdoes it."""
    wanted = {field.name: field for field in rule.match}
    for port, mac in dict.fromkeys((port, mac) for port, _, mac in switch.learned or ()):
        to = Field("eth_dst", mac_value(mac))
        given = wanted.get("eth_dst", to)
        if (given.value ^ to.value) & (-1 if given.mask is None else given.mask):
            continue
        untagged = Field("vlan_vid", 0)
        match = {**wanted, "eth_dst": to, "vlan_vid": wanted.get("vlan_vid", untagged)}
        outputs = (Output(port),) if port and port not in switch.blocked else ()
        others = tuple(action for action in rule.actions if action != Output(NORMAL))
        yield rule._replace(
            priority=rule.priority + 1,
            match=match_order(match.values()),
            actions=(*_named(others, switch), *outputs),
        )


def learning_loops(links: Collection[tuple[End, End]], learning: AbstractSet[int]) -> set[int]:
    """Return the switches in whose part of the fabric learning switches close a loop of links.

    ``links`` are those that may be flooded, as (switch, port) at both ends; ``learning`` are the
    switches with rules that send to NORMAL.
    """
    part = {switch: {switch} for switch in learning}
    looped: set[int] = set()
    for (a, _), (b, _) in links:
        if a not in learning or b not in learning:
            continue
        if part[a] is part[b]:
            looped.add(a)
            continue
        less, more = sorted((part[a], part[b]), key=len)
        more |= less
        for switch in less:
            part[switch] = more
    return {switch for one in looped for switch in part[one]}
