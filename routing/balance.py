"""Shortest walks spread by load: each destination's tree avoids what the ones before it fill.

The walks of one rank of hosts to one destination are chosen together, so that they agree at
every state; then the next rank's, the next destination's, with the loads of those before in
mind. After a first round each tree is taken out and chosen again, knowing all the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from routing.channels import Ints
from routing.engine import Task
from routing.walks import StateGraph, choose, distances

Floats = NDArray[np.float64]

_STEEPNESS = 20.0
"""How much dearer a channel becomes as it fills: the cost is exp(steepness * load / highest)."""


@dataclass(frozen=True)
class _Level:
    """The edges that leave the states at one distance from a destination, grouped by state.

    edges, heads : the edge numbers, and the states that they lead to.
    states, first : the states that they leave, and where the edges of each begin.
    group : for each edge the place of its state in ``states``.
    """

    edges: Ints
    heads: Ints
    states: Ints
    first: NDArray[np.intp]
    group: NDArray[np.intp]


def choose_walks(
    task: Task,
    graph: StateGraph,
    hops: Ints | None = None,
    penalty: Floats | None = None,
    rounds: int = 2,
) -> list[Ints]:
    """Choose the edge that leads on, for each rank of hosts, destination and state.

    ``low-port`` takes the lowest port at each state. ``spread`` takes the way whose channels
    are least loaded by all that was chosen before, the lowest port where that is equal.
    ``hops`` are the distances where they are known; ``penalty`` (edges,) makes edges dearer,
    by so many times what the most loaded channel costs.

    Returns
    -------
    list of (switches, states)
        Edge numbers, -1 where no way is needed: for a host of rank r, entry r modulo the length.

    """
    if hops is None:
        hops = distances(graph)
    receivers = np.bincount(task.host_switches, minlength=len(graph.start))
    if task.select != "spread" or len(graph.tail) == 0:
        chosen = choose(graph, hops, "low-port", 1)
    else:
        if penalty is None:
            penalty = np.zeros(len(graph.tail))
        chosen = _balanced(task, graph, hops, receivers, penalty * np.exp(_STEEPNESS), rounds)
    for choice in chosen:
        choice[receivers == 0] = -1
    return chosen


def _balanced(
    task: Task,
    graph: StateGraph,
    hops: Ints,
    receivers: NDArray[np.intp],
    penalty: Floats,
    rounds: int,
) -> list[Ints]:
    ranks = np.array(task.host_ranks)
    at = np.array(task.host_switches)
    planes = int(ranks.max()) + 1
    senders = [np.bincount(at[ranks == p], minlength=len(graph.start)) for p in range(planes)]
    chosen = [np.full(hops.shape, -1, dtype=np.int32) for _ in range(planes)]
    channel_load = np.zeros(len(graph.channels))
    state_load = np.zeros(len(graph.switch))
    destinations = np.nonzero(receivers)[0].tolist()
    levels = {d: _levels(graph, hops[d], np.unique(at)) for d in destinations}
    for number in range(rounds):
        for d in destinations:
            for plane in range(planes):
                choice = chosen[plane][d]
                flow = senders[plane] * receivers[d]
                flow[d] = 0
                if number:
                    _load(graph, levels[d], choice, flow, channel_load, state_load, -1)
                highest = max(1.0, float(channel_load.max()))
                cost = np.exp(_STEEPNESS / highest * channel_load)[graph.channel]
                cost += (1e-6 / highest) * state_load[graph.head] + penalty
                _choose_cheapest(graph, levels[d], cost, choice)
                _load(graph, levels[d], choice, flow, channel_load, state_load, 1)
    return chosen


def _levels(graph: StateGraph, hops: Ints, sources: NDArray[np.intp]) -> list[_Level]:
    """Return the edges of shortest walks to one destination, nearest states first.

    Only states that a walk from one of the switches ``sources`` can come to count.
    """
    far = hops[graph.tail]
    good = np.nonzero(hops[graph.head] + 1 == far)[0]
    good = good[far[good] <= len(graph.switch)]
    edges = good[np.argsort(far[good], kind="stable")].astype(np.int32)
    cuts = np.searchsorted(far[edges], np.arange(1, int(far[edges].max(initial=0)) + 2))
    reached = np.zeros(len(graph.switch), dtype=bool)
    reached[graph.start[sources]] = True
    levels = []
    for begin, end in reversed(list(pairwise(cuts.tolist()))):
        of_level = edges[begin:end]
        of_level = of_level[reached[graph.tail[of_level]]]
        if len(of_level):
            heads = graph.head[of_level]
            reached[heads] = True
            states, first, group = np.unique(
                graph.tail[of_level], return_index=True, return_inverse=True
            )
            levels.append(_Level(of_level, heads, states, first, group))
    return levels[::-1]


def _choose_cheapest(graph: StateGraph, levels: list[_Level], cost: Floats, choice: Ints) -> None:
    """Set ``choice`` (by state) to the first edge of a cheapest walk."""
    total = np.zeros(len(graph.switch))
    for level in levels:
        through = cost[level.edges] + total[level.heads]
        least = np.minimum.reduceat(through, level.first)
        total[level.states] = least
        cheapest = np.flatnonzero(through == least[level.group])[::-1]
        choice[level.states[level.group[cheapest]]] = level.edges[cheapest]


def _load(
    graph: StateGraph,
    levels: list[_Level],
    choice: Ints,
    flow: NDArray[np.intp],
    channel_load: Floats,
    state_load: Floats,
    sign: int,
) -> None:
    """Add (sign 1) or take away (-1) the paths that ``flow`` hosts a switch send by ``choice``."""
    passing = np.zeros(len(graph.switch))
    passing[graph.start] = flow
    taken, amounts = [], []
    for level in reversed(levels):
        amount = passing[level.states]
        some = amount > 0
        edge, amount = choice[level.states[some]], amount[some]
        passing += np.bincount(graph.head[edge], weights=amount, minlength=len(passing))
        taken.append(edge)
        amounts.append(sign * amount)
    if taken:
        edge, amount = np.concatenate(taken), np.concatenate(amounts)
        for load, places in ((channel_load, graph.channel), (state_load, graph.head)):
            load += np.bincount(places[edge], weights=amount, minlength=len(load))
