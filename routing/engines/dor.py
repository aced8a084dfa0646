"""Dimension order: first all steps in x, then in y, and so on.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks,
1987, for the two virtual channels of a ring. 'e-cube' in Koibuchi et al.

"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from routing.channels import Channels, Ints
from routing.engine import Engine, Routes, Task, rows_of
from topologies.errors import PlanError
from topologies.fabric import Fabric, Grid

_POSITIVE, _NEGATIVE = 0, 1


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
    steps = _steps(task.fabric, grid, task.channels)
    spread = task.select == "spread"
    flips = [rank % 2 if spread else 0 for rank in task.host_ranks]
    rows, row_keys = rows_of(list(zip(task.host_switches, flips, strict=True)))
    starts = np.array([at for at, _ in row_keys], dtype=np.int32)
    parity = np.array([flip for _, flip in row_keys], dtype=np.int32)
    dateline = task.vcs is None or task.vcs >= 2
    paths, priorities = _paths(grid, steps, starts, parity if spread else None, dateline)
    everywhere = np.arange(len(task.channels.names), dtype=np.int32)
    first_hosts = np.zeros_like(everywhere) if spread else None
    of_first, of_first_priorities = _paths(grid, steps, everywhere, first_hosts, dateline)
    trees, tree_priorities = _last_hops(of_first, of_first_priorities)
    return Routes(rows, paths, priorities, trees, tree_priorities)


def _coordinates(grid: Grid) -> Ints:
    """Return (dimensions, switches): where each switch is."""
    number = np.arange(prod(grid.dims), dtype=np.int32)
    strides = [prod(grid.dims[:d]) for d in range(len(grid.dims))]
    return np.array(
        [number // stride % size for stride, size in zip(strides, grid.dims, strict=True)],
        dtype=np.int32,
    )


def _steps(fabric: Fabric, grid: Grid, channels: Channels) -> Ints:
    """Return (dimensions, 2, switches): the channel of one step, positive or negative, or -1.

    Of parallel links the one of the lowest port is taken.
    """
    at = _coordinates(grid)
    count = at.shape[1]
    steps = np.full((len(grid.dims), 2, count), -1, dtype=np.int32)
    lowest: dict[tuple[int, int], int] = {}
    for c in range(len(channels) - 1, -1, -1):
        lowest[int(channels.tail[c]), int(channels.head[c])] = c
    for d, size in enumerate(grid.dims):
        stride = prod(grid.dims[:d])
        ring = grid.wrap and size > 2
        for here in range(count):
            x = int(at[d, here])
            if x == size - 1 and not ring:
                continue
            there = here + ((x + 1) % size - x) * stride
            for way, tail, head in ((_POSITIVE, here, there), (_NEGATIVE, there, here)):
                if (tail, head) not in lowest:
                    names = channels.names
                    raise PlanError(
                        f"dor needs a link from {names[tail]} to {names[head]}, which"
                        f" {fabric.name} lacks; updown runs on any fabric"
                    )
                steps[d, way, tail] = lowest[tail, head]
    return steps


def _paths(
    grid: Grid, steps: Ints, starts: Ints, parity: Ints | None, dateline: bool
) -> tuple[Ints, NDArray[np.uint8]]:
    """Return channels and priorities of the paths from ``starts`` to every switch.

    ``parity`` (one for each start) splits ties; None sends all of them the positive way.
    """
    at = _coordinates(grid)
    shape = (len(starts), at.shape[1])
    longest = sum(size // 2 if grid.wrap and size > 2 else size - 1 for size in grid.dims)
    channels = np.full((*shape, longest), -1, dtype=np.int32)
    priorities = np.zeros((*shape, longest), dtype=np.uint8)
    here = np.broadcast_to(starts[:, None], shape).copy()
    length = np.zeros(shape, dtype=np.int32)
    for d, size in enumerate(grid.dims):
        ring = grid.wrap and size > 2
        origin = at[d][starts][:, None]
        ahead = at[d][None, :] - origin
        if ring:
            ahead = ahead % size
            positive = 2 * ahead < size
            tie_goes_positive = (
                np.ones_like(origin, dtype=bool)
                if parity is None
                else (origin + parity[:, None]) % 2 == 0
            )
            positive |= (2 * ahead == size) & tie_goes_positive
            left = np.where(positive, ahead, size - ahead)
        else:
            positive = ahead > 0
            left = np.abs(ahead)
        crossed = np.zeros(shape, dtype=bool)
        stride = prod(grid.dims[:d])
        for _ in range(int(left.max(initial=0))):
            going = left > 0
            row, column = np.nonzero(going)
            way = np.where(positive[going], _POSITIVE, _NEGATIVE)
            x = at[d][here[going]]
            place = length[going]
            channels[row, column, place] = steps[d, way, here[going]]
            if dateline:
                priorities[row, column, place] = crossed[going]
            crossed[going] |= x == np.where(way == _POSITIVE, size - 1, 0)
            target = (x + np.where(way == _POSITIVE, 1, -1)) % size
            here[going] += (target - x) * stride
            length[going] += 1
            left = left - going
    return channels, priorities


def _last_hops(paths: Ints, priorities: NDArray[np.uint8]) -> tuple[Ints, NDArray[np.uint8]]:
    """Return the channel (and its priority) by which each path enters its destination, or -1.

    Dimension-order paths of one source that break ties alike are a tree.
    """
    last = (paths >= 0).sum(axis=2) - 1
    if paths.shape[2] == 0:
        return np.full(paths.shape[:2], -1, dtype=np.int32), np.zeros(paths.shape[:2], np.uint8)
    index = np.maximum(last, 0)[:, :, None]
    channel = np.take_along_axis(paths, index, axis=2)[:, :, 0]
    priority = np.take_along_axis(priorities, index, axis=2)[:, :, 0]
    return np.where(last < 0, -1, channel).astype(np.int32), priority


ENGINE = Engine(
    name="dor",
    summary="dimension order on meshes and tori; two dateline virtual channels on tori",
    route=route,
)
