"""Frames that are stopped at admission, so that the rest can change without a deadlock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.rules import (
    ADMISSION,
    COOKIE,
    FabricRules,
    Field,
    Rule,
    SwitchRules,
    match_order,
)
from knotless.forwarding.openflow.unused_addresses import ALL_BITS, masks_of
from knotless.forwarding.state import ForwardingState
from knotless.routing.flow_control import waiting
from knotless.routing.graphs.dependencies import find_cycle, virtual_channel
from knotless.routing.multicast import MulticastGroup
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_value
from knotless.verification.changes.change import EVERYTHING, Pair

MAX_HOSTS = 256
"""Fabrics with more hosts stop everything: to choose pairs, each of them is traced."""
PRIORITY = 0xFFFF
"""Of the rules that stop frames: above all others."""
_GROUP_BIT = 1 << 40

Edge = tuple[int, int]


def pairs_to_stop(states: Iterable[ForwardingState], flow_control: FlowControl) -> tuple[Pair, ...]:
    """Return the pairs without which the dependencies of all ``states`` together have no cycle.

    While there is a cycle, all pairs that cause its least used dependency are chosen, the first
    of equal ones. Then each chosen pair that closes no cycle with the others is left out again.
    """
    edges: defaultdict[Pair, set[Edge]] = defaultdict(set)
    for state in states:
        if len(state.fabric.hosts) > MAX_HOSTS:
            return tuple((host.name, EVERYTHING) for host in state.fabric.hosts)
        for pair, of_pair in _edges_of_pairs(state, flow_control):
            edges[pair] |= of_pair
    causes: defaultdict[Edge, set[Pair]] = defaultdict(set)
    for pair, of_pair in edges.items():
        for edge in of_pair:
            causes[edge].add(pair)
    chosen: set[Pair] = set()
    while cycle := find_cycle(sorted(edge for edge, pairs in causes.items() if pairs)):
        steps = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        least = set(causes[min(steps, key=lambda edge: len(causes[edge]))])
        chosen |= least
        for pairs in causes.values():
            pairs -= least
    admitted = {edge for edge, pairs in causes.items() if pairs}
    stopped = []
    for pair in sorted(chosen):
        if edges[pair] <= admitted or not find_cycle(sorted(admitted | edges[pair])):
            admitted |= edges[pair]
        else:
            stopped.append(pair)
    return tuple(stopped)


def _edges_of_pairs(
    state: ForwardingState, flow_control: FlowControl
) -> Iterable[tuple[Pair, set[Edge]]]:
    hosts = [host.name for host in state.fabric.hosts]
    for source in hosts:
        for destination in hosts:
            if source != destination:
                number = state.fabric.host_index[destination]
                yield (source, destination), _edges(state, source, number, flow_control)
        for group in range(len(state.groups) + 1):
            number = state.core.flood_of(state.fabric.host_index[source], group)
            pair = (source, state.destination_name(number))
            yield pair, _edges(state, source, number, flow_control)


def _edges(
    state: ForwardingState, source: str, number: int, flow_control: FlowControl
) -> set[Edge]:
    """Return the dependencies of a packet: where one link enters a switch and one leaves it."""
    channels = state.channels
    hops = [hop for hop in state.trace_number(source, number).hops if hop.channel < len(channels)]
    edges = [
        (virtual_channel(one.channel, one.priority), virtual_channel(other.channel, other.priority))
        for one in hops
        for other in hops
        if channels.head[one.channel] == channels.tail[other.channel]
    ]
    dependencies = waiting(np.array(edges, dtype=np.int64).reshape(-1, 2), flow_control)
    return {(int(holds), int(requests)) for holds, requests in dependencies.tolist()}


def stopping(
    rules: FabricRules,
    fabric: Fabric,
    pairs: Collection[Pair],
    groups: Collection[MulticastGroup] = (),
) -> FabricRules:
    """Return ``rules`` and rules that drop the frames of ``pairs`` at the port of their source.

    So are frames for unused addresses, which compiled rules forward like those for a destination.
    The packet counters of these rules count what is stopped.

    Raises
    ------
    PlanError
        A pair names no host or group.

    """
    if not pairs:
        return rules
    address = {f"multicast:{group.number}": group.address for group in groups}
    address |= {host.name: mac_value(host.mac) for host in fabric.hosts}
    masks = masks_of(mac_value(host.mac) for host in fabric.hosts)
    added: defaultdict[str, list[Rule]] = defaultdict(list)
    for source, destination in pairs:
        if source not in fabric.host_index:
            raise PlanError(f"{fabric.name} has no host {source!r}")
        host = fabric.hosts[fabric.host_index[source]]
        match = [Field("in_port", host.port)]
        if destination == "all":
            match.append(Field("eth_dst", _GROUP_BIT, _GROUP_BIT))
        elif destination != EVERYTHING:
            value = _address(fabric, address, destination)
            mask = masks.get(value, ALL_BITS)
            match.append(Field("eth_dst", value & mask, None if mask == ALL_BITS else mask))
        added[host.switch].append(Rule(ADMISSION, PRIORITY, match_order(match), cookie=COOKIE))
    nothing = SwitchRules(())
    return {
        name: _with(rules.get(name, nothing), added[name])
        for name in dict.fromkeys([*rules, *added])
    }


def _address(fabric: Fabric, address: Mapping[str, int], destination: str) -> int:
    try:
        return address[destination]
    except KeyError:
        raise PlanError(f"{fabric.name} has no host or group {destination!r}") from None


def _with(rules: SwitchRules, added: list[Rule]) -> SwitchRules:
    if not added:
        return rules
    merged = sorted([*rules.rules, *added], key=lambda rule: rule.order)
    return SwitchRules(tuple(merged), rules.groups)
