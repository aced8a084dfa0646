"""Stages in which pairs move from the old routes to the new ones, so that few are dropped.

In each stage some pairs move, and the fabric drains: until then, packets of these pairs may be on
old and new channels. So a stage needs that no cycle of dependencies is in the new routes of the
pairs that have moved, and the old routes of those that move now or later. What cannot move in any
stage is dropped at admission: its old routes, before the last stage; or its new ones, in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.dependencies import find_cycle, virtual_channel, waiting
from knotless.topologies.fabric import Fabric
from knotless.verification.changes.change import EVERYTHING, Pair
from knotless.verification.changes.feedback import Edge, least_feedback, united
from knotless.verification.changes.proof import ALL

MAX_HOSTS = 256
"""Fabrics with more hosts drop everything: to choose pairs, each of them is traced."""
MAX_STAGES = 4
"""Each stage costs the time of a drain."""
FLOOD_WEIGHT = 4
"""To drop what a host sends to all hosts is as bad as to drop so many pairs."""
URGENT_WEIGHT = 1000
"""To keep back a pair that is not served is worse than to keep back so many others."""
MAX_PAIRS = 5000
"""With more pairs, all move in one stage: each search takes seconds."""

PairEdges = Mapping[Pair, frozenset[Edge]]
"""The dependencies of the packets of each pair."""


@dataclass(frozen=True)
class Stage:
    """The pairs admitted until older packets have left: all other pairs take the new routes.

    ``staying`` pairs take the old routes, those that are ``dropped`` none.
    """

    staying: tuple[Pair, ...] = ()
    dropped: tuple[Pair, ...] = ()


EVERYBODY = Stage()
"""All pairs take the new routes."""


@dataclass(frozen=True)
class Schedule:
    """The stages, and the pairs that are dropped in a drain before the first one."""

    dropped_before: tuple[Pair, ...]
    stages: tuple[Stage, ...]


def throughout(dropped: tuple[Pair, ...]) -> Schedule:
    """Return the schedule with one stage that drops these pairs before it and in it."""
    return Schedule(dropped, (Stage(dropped=dropped),))


def everything_dropped(fabric: Fabric) -> tuple[Pair, ...]:
    """Return the pairs that are all frames of all hosts."""
    return tuple((host.name, EVERYTHING) for host in fabric.hosts)


def edges_by_pair(state: ForwardingState, flow_control: FlowControl) -> PairEdges:
    """Return the dependencies of the unicasts of each pair of hosts, and of each host's floods."""
    hosts, edges = state.fabric.hosts, dict[Pair, frozenset[Edge]]()
    for source in range(len(hosts)):
        name = hosts[source].name
        for destination in range(len(hosts)):
            if source != destination:
                pair = (name, hosts[destination].name)
                edges[pair] = _edges(state, name, destination, flow_control)
        floods = (state.core.flood_of(source, group) for group in range(len(state.groups) + 1))
        edges[name, ALL] = united(_edges(state, name, flood, flow_control) for flood in floods)
    return edges


def _edges(
    state: ForwardingState, source: str, number: int, flow_control: FlowControl
) -> frozenset[Edge]:
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
    return frozenset((int(holds), int(requests)) for holds, requests in dependencies.tolist())


def dropped_throughout(old: PairEdges, new: PairEdges) -> tuple[Pair, ...]:
    """Return pairs without which old and new routes together have no cycle."""
    both = {pair: old[pair] | new[pair] for pair in old}
    return tuple(sorted(least_feedback(both, frozenset(), _weight)))


def _weight(pair: Pair) -> int:
    """Return how much it matters that a pair is dropped: a flood goes to all hosts."""
    return FLOOD_WEIGHT if pair[1] == ALL else 1


def schedule_between(
    old: PairEdges, new: PairEdges, urgent: Collection[Pair] = frozenset()
) -> Schedule:
    """Return the schedule with the fewest routes that are dropped, and of these the shortest.

    The pairs that are ``urgent``, which the old routes do not serve, move in the first stage in
    which that is possible.
    """
    if any(find_cycle(sorted(united(routes.values()))) for routes in (old, new)):
        # Rules of an interrupted update: a packet that passes a switch twice counts as both turns.
        return throughout(dropped_throughout(old, new))
    left, staying = list(old), list[list[Pair]]()
    best: tuple[int, list[list[Pair]], set[tuple[bool, Pair]]] | None = None
    most = MAX_STAGES if len(left) <= MAX_PAIRS else 1
    while True:
        remaining = set(left)
        moved = united(new[pair] for pair in new if pair not in remaining)
        routes = {
            (is_new, pair): edges[pair]
            for is_new, edges in ((False, old), (True, new))
            for pair in left
        }
        dropped = least_feedback(routes, moved, lambda route: _weight(route[1]))
        weight = sum(_weight(pair) for _, pair in dropped)
        if best is None or weight < best[0]:
            best = (weight, list(staying), dropped)
        if not dropped or len(staying) + 1 >= most:
            break
        stuck = least_feedback(
            {pair: new[pair] for pair in left},
            moved.union(*(old[pair] for pair in left)),
            lambda pair: URGENT_WEIGHT if pair in urgent else _weight(pair),
        )
        if len(stuck) == len(left):
            break
        left = [pair for pair in left if pair in stuck]
        staying.append(left)
    return _schedule(best[1], best[2])


def _schedule(staying: Iterable[list[Pair]], dropped: set[tuple[bool, Pair]]) -> Schedule:
    """Return the schedule; old routes are dropped from the drain before the last stage on."""
    by_route: defaultdict[bool, list[Pair]] = defaultdict(list)
    for is_new, pair in sorted(dropped):
        by_route[is_new].append(pair)
    old, last = tuple(by_route[False]), Stage(dropped=tuple(by_route[True]))
    *earlier, before_last = [Stage(), *(Stage(tuple(of_stage)) for of_stage in staying)]
    if not earlier:
        return Schedule(old, (last,))
    left = tuple(pair for pair in before_last.staying if pair not in set(old))
    return Schedule((), (*earlier[1:], Stage(left, old), last))
