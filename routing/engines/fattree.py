"""Fat-trees: up by the digits of the destination's number, then down.

References
----------
Zahavi, Johnson, Kerbyson, Lang, Optimized InfiniBand fat-tree routing for shift all-to-all
communication patterns, 2010 ('d-mod-k').

"""

from __future__ import annotations

import numpy as np

from knotless_core.graph import StateGraph
from routing.balance import rows_in
from routing.channels import Ints
from routing.engine import Engine, Routes, Task
from routing.walks import FAR, up_down_graph
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
    level = _levels(task)
    rises = level[channels.head] > level[channels.tail]
    falls = level[channels.head] < level[channels.tail]
    graph = up_down_graph(channels, rises, falls)
    _check_joined(task, graph)
    wanted = _digits(task, graph, level)
    rows = rows_in(task, len(wanted))
    paths, priorities = graph.counted_paths(rows.plane, rows.at, task.receivers > 0, wanted)
    trees = channels.core.up_then_down(rises, falls)
    none = np.zeros(trees.shape, dtype=np.uint8)
    return Routes(rows.of_host, paths, priorities, trees, none)


def _levels(task: Task) -> Ints:
    """Return the hops of each switch to the nearest one with hosts."""
    with_hosts = np.flatnonzero(task.receivers).astype(np.int32)
    return task.channels.core.breadth_first(with_hosts)[1]


def _check_joined(task: Task, graph: StateGraph) -> None:
    """Raise PlanError where there is no way from one switch with hosts to another."""
    at = np.flatnonzero(task.receivers)
    apart = np.argwhere(graph.hops()[np.ix_(at, at)] >= FAR)
    if len(apart):
        destination, source = (task.channels.names[at[i]] for i in apart[0])
        raise PlanError(
            f"fattree needs a way up and down between all hosts; {task.fabric.name} has none"
            f" from {source} to {destination}; updown runs on any fabric"
        )


def _digits(task: Task, graph: StateGraph, level: Ints) -> Ints:
    """Return (ranks of hosts, switches, states): which link to take.

    Going up from level l it is digit l. Going down from level l, where there is a choice,
    it is the digit that was used on the way up from level l - 2, so that the way down
    mirrors the way up.
    """
    channels = task.channels
    rises = level[channels.head] > level[channels.tail]
    (switch, start), (_, _, channel) = graph.states(), graph.edges()
    counts = graph.ways(np.ones(len(channel), dtype=bool))
    rising = graph.ways(rises[channel])
    state_level = level[switch]
    base = np.ones(int(level.max()) + 1, dtype=np.int64)
    for above in range(1, len(base)):
        ways = int(rising[:, state_level == above - 1].max(initial=1))
        base[above] = min(base[above - 1] * ways, 1 << 40)
    divisor = np.where(rising > 0, base[state_level], base[np.maximum(0, state_level - 2)])
    at = np.flatnonzero(task.receivers)
    number = np.zeros(len(start), dtype=np.int64)
    number[at] = np.arange(len(at)) * task.ranks
    spread = task.select == "spread" and counts[at].max(initial=0) > 1
    ranks = np.arange(task.ranks if spread else 1)[:, None, None]
    digits: Ints = ((number[:, None] + ranks) // divisor % (1 << 20)).astype(np.int32)
    return digits


ENGINE = Engine(
    name="fattree",
    summary="fat-trees: up by the digits of the destination (d-mod-k), then down",
    route=route,
)
