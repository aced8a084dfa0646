"""Fat-trees: up by the digits of the destination's number, then down.

References
----------
Zahavi, Johnson, Kerbyson, Lang, Optimized InfiniBand fat-tree routing for shift all-to-all
communication patterns, 2010 ('d-mod-k').

"""

from __future__ import annotations

import numpy as np

from common.errors import PlanError
from knotless_core.graph import StateGraph
from routing.engine import Engine
from routing.graphs.balance import rows_in
from routing.graphs.channels import Ints
from routing.graphs.state_graph import up_down_graph
from routing.graphs.task import Task
from routing.routes import Routes, TableRoutes, no_changes


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
    next_hop = _tables(task, level, up_down_graph(channels, rises, falls))
    rows = rows_in(task, len(next_hop))
    trees = channels.core.up_then_down(rises, falls)
    none = np.zeros(trees.shape, dtype=np.uint8)
    first = np.zeros((len(next_hop), len(level)), dtype=np.uint8)
    return TableRoutes(
        rows.of_host, channels, rows.at, rows.plane, next_hop, first, no_changes(), trees, none
    )


def _levels(task: Task) -> Ints:
    """Return the hops of each switch to the nearest one with hosts."""
    with_hosts = np.flatnonzero(task.receivers).astype(np.int32)
    return task.channels.core.breadth_first(with_hosts)[1]


def _tables(task: Task, level: Ints, graph: StateGraph) -> Ints:
    """Return the next-hop tables, one for each rank of hosts if they differ."""
    receives = task.receivers > 0
    number = np.zeros(len(level), dtype=np.int64)
    number[receives] = np.arange(np.count_nonzero(receives)) * task.ranks
    try:
        return graph.counted_tables(
            level, number, receives, task.ranks if task.select == "spread" else 1
        )
    except LookupError as apart:
        source, destination = (task.channels.names[end] for end in apart.args)
        raise PlanError(
            f"fattree needs a way up and down between all hosts; {task.fabric.name} has none"
            f" from {source} to {destination}; updown runs on any fabric"
        ) from None


ENGINE = Engine(
    name="fattree",
    summary="fat-trees: up by the digits of the destination (d-mod-k), then down",
    route=route,
)
