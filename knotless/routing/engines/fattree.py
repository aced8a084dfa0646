"""Fat-trees: up by the digits of the destination's number, then down.

References
----------
Zahavi, Johnson, Kerbyson, Lang, Optimized InfiniBand fat-tree routing for shift all-to-all
communication patterns, 2010 ('d-mod-k').

"""

from __future__ import annotations

import numpy as np

from knotless._core.graph import NextHops, StateGraph
from knotless.base.errors import PlanError
from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.next_hop_sets import NextHopSets, up_down_next_hops
from knotless.routing.graphs.state_graph import up_down_graph
from knotless.routing.graphs.task import Task
from knotless.routing.graphs.tree_levels import levels
from knotless.routing.routes import Routes, TableRoutes, no_changes


def route(task: Task) -> Routes:
    """Return up-down paths; the digits of the destination's number select the up-links (d-mod-k).

    A switch's level is its distance to the nearest switch with hosts; links within a level are
    not used. Paths are the shortest that go up, then down, which closes no cycle on one virtual
    channel. The number is the index of the destination switch times the hosts per switch, plus
    with ``spread`` the rank of the source host; its digit for each level selects the up-link
    there.

    Raises
    ------
    PlanError
        No path up and then down connects two switches with hosts.

    """
    channels = task.channels
    level = levels(task)
    rises = level[channels.head] > level[channels.tail]
    falls = level[channels.head] < level[channels.tail]
    next_hop = _tables(task, level, up_down_graph(channels, rises, falls))
    rows = rows_in(task, len(next_hop))
    trees = channels.core.up_then_down(rises, falls, task.receivers > 0)
    none = np.zeros(trees.shape, dtype=np.uint8)
    first = np.zeros((len(next_hop), len(level)), dtype=np.uint8)
    return TableRoutes(
        rows.of_host,
        channels,
        rows.switch,
        rows.rank_class,
        next_hop,
        first,
        no_changes(),
        trees,
        none,
        task.columns,
    )


def next_hops(task: Task) -> NextHopSets:
    """Return all shortest paths that go up, then down, by the levels of :func:`route`."""
    channels, level = task.channels, levels(task)
    rises = level[channels.head] > level[channels.tail]
    falls = level[channels.head] < level[channels.tail]
    order = np.argsort(-level, kind="stable").astype(np.int32)
    return up_down_next_hops(task, rises, falls, order, "fattree")


def _tables(task: Task, level: Ints, graph: StateGraph) -> NextHops:
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
            f"fattree needs a path up and then down between all hosts; {task.fabric.name} has"
            f" none from {source} to {destination}; updown runs on any fabric"
        ) from None


ENGINE = Engine(
    name="fattree",
    summary="fat-trees: up by the digits of the destination (d-mod-k), then down",
    route=route,
    rule="A path goes up until it can come down to the destination. At each level, a digit "
    "of the destination's number selects the link up.",
    proof="A path never goes up after it went down, so no dependency leads from a channel "
    "down to a channel up.",
    use="Fat-trees and Clos fabrics of any size. Paths are shortest, and the digits spread the "
    "load over all links up.",
    next_hops=next_hops,
)
