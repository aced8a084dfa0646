"""Fat-trees: up by the digits of the destination's number, then down.

References
----------
Zahavi, Johnson, Kerbyson, Lang, Optimized InfiniBand fat-tree routing for shift all-to-all
communication patterns, 2010 ('d-mod-k').

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routing.assemble import channels_along, walk_all
from routing.channels import Channels, Ints
from routing.engine import Engine, Routes, Task
from routing.turns import Mask
from routing.walks import StateGraph, candidates, distances, good_edges, graph_of, pick, plain_graph
from topologies.errors import PlanError


def route(task: Task) -> Routes:
    """Return up-down paths, the up-links chosen by the destination's number: d-mod-k.

    A switch's level is its distance to the nearest switch with hosts; links within a level
    are not used. Going up, then down, closes no cycle; one virtual channel. The shortest such
    paths are taken. The number of a destination switch, times the hosts a switch has, plus with
    ``spread`` the rank of the source host, is written in digits, one for each level; the
    digit tells which up-link to take.

    Raises
    ------
    PlanError
        Two switches with hosts are not joined by going up and then down.

    """
    channels = task.channels
    at = np.unique(task.host_switches)
    level = distances(plain_graph(channels))[:, at].min(axis=1)
    rises = level[channels.head] > level[channels.tail]
    falls = level[channels.head] < level[channels.tail]
    graph = _up_down_graph(channels, rises, falls)
    hops = distances(graph)
    _check_joined(task, at, hops)
    good = good_edges(graph, hops)
    choices = (
        [pick(graph, good, wanted) for wanted in _digits(task, graph, at, level, good)]
        if len(channels)
        else [np.full(hops.shape, -1, dtype=np.int32)]
    )
    without_hosts = np.setdiff1d(np.arange(len(level)), at)
    for choice in choices:
        choice[without_hosts] = -1
    rows, edges = walk_all(task, graph, choices)
    paths = channels_along(graph, edges)
    trees = up_down_trees(channels, rises, falls)
    zeros = np.zeros(paths.shape, dtype=np.uint8)
    return Routes(rows, paths, zeros, trees, np.zeros(trees.shape, dtype=np.uint8))


def _up_down_graph(channels: Channels, rises: Mask, falls: Mask) -> StateGraph:
    """Return the states (going up still, switch), then (going down, switch)."""
    count = len(channels.names)
    tail, head = channels.tail, channels.head
    every = np.arange(len(channels), dtype=np.int32)
    below = np.int32(count)
    edges = [
        (tail[rises], head[rises], every[rises]),
        (tail[falls], head[falls] + below, every[falls]),
        (tail[falls] + below, head[falls] + below, every[falls]),
    ]
    switches = np.arange(count, dtype=np.int32)
    return graph_of(channels, np.tile(switches, 2), switches, edges)


def _check_joined(task: Task, at: NDArray[np.intp], hops: Ints) -> None:
    """Raise PlanError where there is no way from one of the switches ``at`` to another."""
    apart = np.argwhere(hops[np.ix_(at, at)] >= hops.shape[1])
    if len(apart):
        destination, source = (task.channels.names[at[i]] for i in apart[0])
        raise PlanError(
            f"fattree needs a way up and down between all hosts; {task.fabric.name} has none"
            f" from {source} to {destination}; updown runs on any fabric"
        )


def _digits(
    task: Task, graph: StateGraph, at: NDArray[np.intp], level: Ints, good: Mask
) -> list[Ints]:
    """Return, for each rank of hosts, (switches, states with edges): which link to take.

    Going up from level l it is digit l. Going down from level l, where there is a choice,
    it is the digit that was used on the way up from level l - 2, so that the way down
    mirrors the way up.
    """
    tails, counts = candidates(graph, good)
    rises = level[graph.channels.head] > level[graph.channels.tail]
    rising = candidates(graph, good & rises[graph.channel])[1]
    state_level = level[graph.switch[tails]]
    base = np.ones(int(level.max()) + 1, dtype=np.int64)
    for above in range(1, len(base)):
        ways = int(rising[:, state_level == above - 1].max(initial=1))
        base[above] = min(base[above - 1] * ways, 1 << 40)
    divisor = np.where(rising > 0, base[state_level], base[np.maximum(0, state_level - 2)])
    ranks = max(task.host_ranks) + 1
    number = np.zeros(len(graph.start), dtype=np.int64)
    number[at] = np.arange(len(at)) * ranks
    planes = ranks if task.select == "spread" and counts[at].max(initial=0) > 1 else 1
    return [
        ((number[:, None] + rank) // divisor % (1 << 20)).astype(np.int32) for rank in range(planes)
    ]


def up_down_trees(channels: Channels, rises: Mask, falls: Mask) -> Ints:
    """Return a broadcast tree for each switch: to all that is above it, then down everywhere.

    Entry [u, v] is the channel that enters v; -1 where no way up and down leads there.
    """
    count = len(channels.names)
    trees = np.full((count, count), -1, dtype=np.int32)
    reached = np.eye(count, dtype=bool)
    for usable in (np.nonzero(rises)[0], np.nonzero(falls)[0]):
        while True:
            fresh = reached[:, channels.tail[usable]] & ~reached[:, channels.head[usable]]
            source, place = np.nonzero(fresh)
            if not len(source):
                break
            entering = usable[place[::-1]]  # the lowest channel is written last, and stays
            trees[source[::-1], channels.head[entering]] = entering
            reached[source, channels.head[usable[place]]] = True
    return trees


ENGINE = Engine(
    name="fattree",
    summary="fat-trees: up by the digits of the destination (d-mod-k), then down",
    route=route,
)
