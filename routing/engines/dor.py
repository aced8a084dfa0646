"""Dimension order: first all steps in x, then in y, and so on.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks,
1987, for the two virtual channels of a ring. 'e-cube' in Koibuchi et al.

"""

from __future__ import annotations

import numpy as np

from knotless_core.graph import last_hops
from routing.balance import rows_in
from routing.channels import Ints, Priorities
from routing.engine import Engine, Routes, Task
from topologies.errors import PlanError
from topologies.fabric import Grid


def route(task: Task) -> Routes:
    """Return dimension-order paths, each the shortest.

    In a torus a packet starts every dimension on virtual channel 0 and goes on by 1 after
    the wrap-around link (the dateline). With one virtual channel a ring is a cycle as soon as
    there are paths of two hops from everywhere: with ``low-port`` from size 4 on.

    Where both ways round are as short, ``low-port`` takes the positive one; ``spread`` the
    positive one when the source's coordinate in that dimension plus its host rank is even.
    A broadcast takes the paths of its switch's first host.

    Raises
    ------
    PlanError
        The fabric is no mesh or torus, or lacks one of its links.

    """
    grid = task.fabric.grid
    if grid is None:
        raise PlanError(
            f"dor needs a mesh or torus, which {task.fabric.name} is not; updown runs on any fabric"
        )
    spread = task.select == "spread"
    rows = rows_in(task, 2 if spread and grid.wrap else 1)
    dateline = task.vcs is None or task.vcs >= 2
    paths, priorities = _paths(task, grid, rows.at, rows.plane if spread else None, dateline)
    first = np.count_nonzero(rows.plane == 0)  # they come first
    trees = last_hops(paths[:first], priorities[:first], rows.at[:first])
    return Routes(rows.of_host, paths, priorities, *trees)


def _paths(
    task: Task, grid: Grid, starts: Ints, parity: Ints | None, dateline: bool
) -> tuple[Ints, Priorities]:
    """Return channels and priorities of the paths from ``starts`` to every switch.

    ``parity`` (one for each start) splits ties; None sends all of them the positive way.
    """
    channels = task.channels
    dims = np.array(grid.dims, dtype=np.int32)
    try:
        return channels.core.dimension_order_paths(dims, grid.wrap, starts, parity, dateline)
    except LookupError as missing:
        tail, head = (channels.names[end] for end in missing.args)
        raise PlanError(
            f"dor needs a link from {tail} to {head}, which {task.fabric.name} lacks;"
            " updown runs on any fabric"
        ) from None


ENGINE = Engine(
    name="dor",
    summary="dimension order on meshes and tori; two dateline virtual channels on tori",
    route=route,
)
