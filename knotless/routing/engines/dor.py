"""Dimension order: first all steps in x, then in y, and so on.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks,
1987, for the two virtual channels of a ring. 'e-cube' in Koibuchi et al.

"""

from __future__ import annotations

import numpy as np

from knotless._core.graph import NextHops
from knotless.base.errors import PlanError
from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Ints, Priorities
from knotless.routing.graphs.task import Task
from knotless.routing.routes import Routes, TableRoutes
from knotless.topologies.fabric import Grid


def route(task: Task) -> Routes:
    """Return dimension-order paths, which are minimal.

    In a torus, a packet enters each dimension on virtual channel 0, and changes to virtual
    channel 1 after the wrap-around link (the dateline). With one virtual channel, a ring closes a
    cycle if paths of two hops start at every switch; with ``low-port`` this is so from size 4.

    If both directions are equally short, ``low-port`` takes the positive one. ``spread`` takes
    the positive one if the source's coordinate in that dimension plus its host rank is even. A
    broadcast takes the paths of its switch's first host. A tie occurs only where a path enters a
    dimension, at the source's coordinate, so two tables (even and odd ranks) are enough.

    Raises
    ------
    PlanError
        The fabric is not a mesh or torus, or lacks one of its links.

    """
    grid = task.fabric.grid
    if grid is None:
        raise PlanError(
            f"dor needs a mesh or torus, which {task.fabric.name} is not; updown runs on any fabric"
        )
    spread = task.select == "spread"
    rows = rows_in(task, 2 if spread and grid.wrap else 1)
    ties = any(size > 2 and size % 2 == 0 for size in grid.dims)
    table = rows.rank_class if ties else np.zeros_like(rows.rank_class)
    next_hop, changes, trees, of_trees = _tables(task, grid, rows.switch, table)
    none = np.zeros((len(next_hop), len(task.channels.names)), dtype=np.uint8)
    return TableRoutes(
        rows.of_host, task.channels, rows.switch, table, next_hop, none, changes, trees, of_trees
    )


def _tables(
    task: Task, grid: Grid, row_switch: Ints, table: Ints
) -> tuple[NextHops, Ints, Ints, Priorities]:
    """Return next hops, priority changes, and the broadcast trees with their priorities."""
    dims = np.array(grid.dims, dtype=np.int32)
    spread, dateline = task.select == "spread", task.vcs is None or task.vcs >= 2
    try:
        return task.channels.core.dimension_order_tables(
            dims, grid.wrap, row_switch, table, spread, dateline
        )
    except LookupError as missing:
        tail, head = (task.channels.names[end] for end in missing.args)
        raise PlanError(
            f"dor needs a link from {tail} to {head}, which {task.fabric.name} lacks;"
            " updown runs on any fabric"
        ) from None


ENGINE = Engine(
    name="dor",
    summary="dimension order on meshes and tori; two dateline virtual channels on tori",
    route=route,
    rule="A path finishes its steps in the first dimension, then those in the second, and so "
    "on. On a torus it continues on virtual channel 1 after the wrap-around link of a dimension "
    "(the dateline).",
    proof="Dependencies only lead to later dimensions. Within a dimension of a torus, the "
    "dateline cuts each ring: nothing on virtual channel 1 waits for virtual channel 0. "
    "With a single virtual channel this argument fails if paths of two hops start at "
    "every switch of a ring.",
    use="Meshes and tori. Paths are shortest and the load is even.",
)
