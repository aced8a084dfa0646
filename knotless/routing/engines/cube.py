"""Twisted tori: dimension order along the rings of each dimension, with datelines.

References
----------
Dally, Seitz: Deadlock-free message routing in multiprocessor interconnection networks, 1987, for
datelines. Camara et al.: Twisted torus topologies for enhanced interconnection networks, IEEE TPDS
2010. The combination is ours.

"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from knotless.base.errors import PlanError
from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.family_members import member_of
from knotless.routing.graphs.segments import Choices, SegmentedPaths, between_switches
from knotless.routing.graphs.state_graph import Mask
from knotless.routing.graphs.task import Task
from knotless.routing.routes import ExplicitRoutes, Routes
from knotless.topologies.families.cube import neighbour, shifts_of


def route(task: Task) -> Routes:
    """Return minimal paths that finish the steps in x, then those in y, then those in z.

    The steps in one dimension are on a ring. In a twisted torus it leads through several rows, but
    rings of a dimension have no switch in common. Each ring has a dateline between the switch with
    its lowest number and the previous one. A packet enters each dimension on virtual channel 0, and
    changes to 1 after the dateline, which it crosses once at most, because its steps are fewer than
    the switches of the ring.

    If several numbers of steps are equally short, ``spread`` takes them in turn, by the sum of the
    number of the source's row of hosts (rank by rank, switch by switch) and that of the destination
    switch. ``low-port`` takes the first in descending order, so positive steps first. Broadcasts
    take dimension order without wrap-around links, on virtual channel 0.

    Raises
    ------
    PlanError
        The fabric is no cube, or lacks switches or links.

    """
    member = member_of(task, "cube", "cube")
    dims = member.family.sizes
    shifts = shifts_of(dims, bool(member.family.options["twist"]))
    channels, count = task.channels, prod(dims)
    if shifts is None or len(channels) < 6 * count:
        raise PlanError(
            f"cube needs all switches and links, which {task.fabric.name} lacks; updown runs on any"
            " fabric"
        )
    places = np.unravel_index(np.arange(count), dims, order="F")
    coordinates = np.stack(places, axis=1).astype(np.int32)
    forward = np.array(
        [[neighbour(dims, shifts, place, d) for place in coordinates.tolist()] for d in range(3)],
        dtype=np.int32,
    )
    rings = [_ring(step) for step in forward]
    moved = _moved(dims, forward)
    vectors, first, ties = _shortest(moved, rings)
    rows = rows_in(task, task.ranks if task.select == "spread" else 1)
    paths = SegmentedPaths(channels, rows, int(np.abs(vectors).sum(axis=1).max()))
    offsets = np.empty((count, count), dtype=np.int32)
    offsets[np.arange(count)[None, :], moved] = np.arange(count, dtype=np.int32)[:, None]
    offset = offsets[rows.switch]
    turn = paths.turn if task.select == "spread" else np.zeros_like(paths.turn)
    chosen = vectors[first[offset] + turn % ties[offset]]
    links = between_switches(channels)
    for d, ring in enumerate(rings):
        _walk(paths, links, forward[d], ring.argmin(axis=0) == 0, chosen[..., d])
    trees = _trees(links, coordinates, dims)
    none = np.zeros(trees.shape, dtype=np.uint8)
    return ExplicitRoutes(rows.of_host, *paths.finished(), trees, none)


def _ring(forward: Ints) -> Ints:
    """Return the switches of the ring of each switch, from it: shape (ring, switches)."""
    ring: list[Ints] = [np.arange(len(forward), dtype=np.int32)]
    while (following := forward[ring[-1]])[0] != 0:
        ring.append(following)
    return np.stack(ring)


def _moved(dims: tuple[int, ...], forward: Ints) -> Ints:
    """Return the switch that is as far from switch b as a from switch 0: shape (a, b)."""
    count = prod(dims)
    moved = np.empty((count, count), dtype=np.int32)
    moved[0] = np.arange(count)
    for a in range(1, count):
        d = 0 if a % dims[0] else 1 if a % (dims[0] * dims[1]) else 2
        moved[a] = forward[d][moved[a - prod(dims[:d])]]
    return moved


def _shortest(moved: Ints, rings: list[Ints]) -> tuple[Ints, Ints, Ints]:
    """Return the shortest (x, y, z) steps to each switch from switch 0, all of them.

    Returns
    -------
    vectors : array of shape (vectors, 3)
        The steps, by switch, and for each in descending order.
    first, ties : arrays of shape (switches,)
        Where those of a switch begin, and how many there are.

    """
    halves = [range(len(ring) // 2, -(len(ring) // 2) - 1, -1) for ring in rings]
    vectors = np.array(list(product(*halves)), dtype=np.int32)
    ends = [ring[vectors[:, d], 0] for d, ring in enumerate(rings)]
    end = moved[moved[ends[0], ends[1]], ends[2]]
    length = np.abs(vectors).sum(axis=1)
    least = np.full(len(moved), length.max(), dtype=length.dtype)
    np.minimum.at(least, end, length)
    kept = np.flatnonzero(length == least[end])
    kept = kept[np.argsort(end[kept], kind="stable")]
    ties = np.bincount(end[kept], minlength=len(moved)).astype(np.int32)
    return vectors[kept], (np.cumsum(ties) - ties).astype(np.int32), ties


def _walk(paths: SegmentedPaths, links: Choices, forward: Ints, lowest: Mask, steps: Ints) -> None:
    """Append ``steps`` along the rings of one dimension; ``lowest``: whose number is the lowest."""
    count = len(forward)
    backward = np.argsort(forward).astype(np.int32)
    crossed = np.zeros(steps.shape, dtype=np.int32)
    for step in range(int(np.abs(steps).max(initial=0))):
        moving = np.abs(steps) > step
        here = paths.here.copy()
        there = np.where(steps > 0, forward[here], backward[here])
        channel = links.pick(here.astype(np.int64) * count + there, paths.turn)
        paths.take(channel, moving, crossed)
        crossed |= np.where(steps > 0, lowest[there], lowest[here])


def _trees(links: Choices, coordinates: Ints, dims: tuple[int, ...]) -> Ints:
    """Return the broadcast trees: dimension order without wrap-around links."""
    count = prod(dims)
    delta = coordinates[None, :, :] - coordinates[:, None, :]  # (source, switch, dimension)
    last = np.where(delta[..., 2] != 0, 2, np.where(delta[..., 1] != 0, 1, 0))
    sign = np.sign(np.take_along_axis(delta, last[..., None], axis=2))[..., 0]
    strides = np.array([1, dims[0], dims[0] * dims[1]])
    switch = np.arange(count)
    before = switch[None, :] - sign * strides[last]
    return links.pick(before * count + switch[None, :], np.zeros((count, count), dtype=np.int64))


ENGINE = Engine(
    name="cube",
    summary="cubes joined to tori, also twisted: dimension order, two dateline virtual channels",
    route=route,
    rule="A path takes the fewest steps in x, y and z that lead to the destination, in this order. "
    "It is on virtual channel 1 from the dateline of a ring to the end of that dimension.",
    proof="Dependencies only lead to later dimensions. Rings of one dimension have no switch in "
    "common, also where the twist lets a ring lead through several rows. The dateline cuts each: "
    "a path crosses it once at most, and nothing on virtual channel 1 waits for 0.",
    use="Twisted tori, on which the datelines of dor do not apply. Paths are shortest.",
)
