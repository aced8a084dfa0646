"""Dimension order on meshes, tori and HyperX, as a function of switch and destination alone."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.family_members import member_of
from knotless.routing.graphs.state_graph import Mask
from knotless.routing.graphs.task import Task


def dimension_order(task: Task) -> Mask | None:
    """Return the channels that correct the first coordinate in which switch and destination differ.

    The shorter way round a ring of a torus; of two equally short ones that in the positive
    direction from even coordinates, and in the negative one from odd ones.

    Returns
    -------
    array of bool, shape (destination switches, channels), or None
        The channels that lead to each switch; None: the fabric is no mesh, torus, HyperX or full
        mesh. In a damaged fabric some may be missing.

    """
    placed = _coordinates(task)
    if placed is None:
        return None
    sizes, place = placed
    tail, head = place[task.channels.tail], place[task.channels.head]
    first = _first_difference(place)[:, task.channels.tail]
    taken = np.zeros(first.shape, dtype=np.bool_)
    for d, size in enumerate(sizes):
        goal, here = place[:, d][:, None], tail[:, d]
        in_dimension = tail[:, d] != head[:, d]  # channels of these fabrics are in a single one
        if task.fabric.grid is None:
            right = head[:, d] == goal
        else:
            right = (head[:, d] - here) % size == _step(task, goal - here, here, size) % size
        taken |= (first == d) & (goal != here) & in_dimension & right
    return taken


def wraps(task: Task) -> Mask:
    """Return whether a path by :func:`dimension_order` has to pass a wrap-around link yet.

    That is in the dimension of the channel, from its tail on, this channel included; same shape.
    """
    placed = _coordinates(task)
    assert placed is not None  # noqa: S101 - dimension_order() has seen them
    sizes, place = placed
    tail = place[task.channels.tail]
    first = _first_difference(place)[:, task.channels.tail]
    wrapping = np.zeros(first.shape, dtype=np.bool_)
    for d, size in enumerate(sizes):
        goal, here = place[:, d][:, None], tail[:, d]
        forward = _step(task, goal - here, here, size) > 0
        wrapping |= (first == d) & np.where(forward, goal < here, goal > here)
    return wrapping


def _coordinates(task: Task) -> tuple[tuple[int, ...], Ints] | None:
    """Return the sizes, and the coordinates of each switch, shape (switches, dimensions)."""
    grid = task.fabric.grid
    if grid is not None:
        sizes = grid.dims
        numbers: Ints = np.arange(len(task.channels.names), dtype=np.int32)
    else:
        try:
            member = member_of(task, "adaptive", "hyperx", "fullmesh")
        except PlanError:
            return None
        sizes, numbers = member.family.sizes, member.numbers
    strides = [prod(sizes[:d]) for d in range(len(sizes))]
    columns = [numbers // s % size for s, size in zip(strides, sizes, strict=True)]
    return sizes, np.stack(columns, axis=1).astype(np.int32)


def _first_difference(place: Ints) -> NDArray[np.int64]:
    """Return the first dimension in which each switch differs from each destination.

    Shape (destinations, switches); at the destination itself, any.
    """
    first: NDArray[np.int64] = np.zeros((len(place), len(place)), dtype=np.int64)
    for d in reversed(range(place.shape[1])):
        first = np.where(place[:, d][:, None] != place[:, d], d, first)
    return first


def _step(task: Task, offset: Ints, here: Ints, size: int) -> Ints:
    """Return 1 or -1, the direction in which a coordinate is corrected."""
    grid = task.fabric.grid
    positive: Mask = offset > 0
    if grid is not None and grid.wrap:
        ahead = 2 * (offset % size)
        positive = (ahead < size) | ((ahead == size) & (here % 2 == 0))
    return np.where(positive, np.int32(1), np.int32(-1))
