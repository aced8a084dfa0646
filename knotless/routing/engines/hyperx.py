"""HyperX: dimension order on one virtual channel, two hops a dimension on two.

References
----------
Ahn, Binkert, Davis, McLaren, Schreiber: HyperX: topology, routing, and packaging of efficient
large-scale networks, SC 2009. McDonald, Isaev, Flores, Davis, Kim: Practical and efficient
incremental adaptive routing for HyperX networks, SC 2019, for the virtual channels of DimWAR.

"""

from __future__ import annotations

from math import prod

import numpy as np

from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.family_members import member_of
from knotless.routing.graphs.phases import Phases
from knotless.routing.graphs.segments import SegmentedPaths, between_switches
from knotless.routing.graphs.task import Task
from knotless.routing.phased_routes import broadcast_trees, refuse_apart, routes_in_phases
from knotless.routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return minimal paths that correct the coordinates in the order of the dimensions.

    Parallel links are balanced by load, with a next-hop table for each rank of hosts: see
    :func:`knotless.routing.phased_routes.routes_in_phases`.

    Raises
    ------
    PlanError
        The fabric is no HyperX or full mesh, or lacks links of such a path.

    """
    dims, number = _places(task, "hyperx")
    return routes_in_phases(task, _in_order(len(dims)), _kinds(task, dims, number), "hyperx")


def route_dimwar(task: Task) -> Routes:
    """Return paths of one or two hops in each dimension in which source and destination differ.

    The first hop goes to an intermediate coordinate on virtual channel 0, the second to that of the
    destination on 1. The intermediate coordinate is the sum of all coordinates of source and
    destination and the rank of the source host, modulo the size; if it is that of the source or
    destination, there is one hop, on virtual channel 0. Parallel links take turns.

    DimWAR chooses at each switch, by its queues, whether to take the longer path. Here the choice
    is made by the source, once for each pair.

    Raises
    ------
    PlanError
        The fabric is no HyperX or full mesh, or lacks links of such a path.

    """
    name = "dimwar"
    dims, number = _places(task, name)
    kind = _kinds(task, dims, number)
    trees, of_trees = broadcast_trees(task, _in_order(len(dims)), kind, name)
    rows = rows_in(task, task.ranks if task.select == "spread" else 1)
    paths = SegmentedPaths(task.channels, rows, 2 * len(dims))
    count = len(task.channels.names)
    links = between_switches(task.channels)
    switch_of = np.full(prod(dims), -1, dtype=np.int32)
    switch_of[number] = np.arange(count, dtype=np.int32)
    coordinates = np.zeros_like(number)
    for d, size in enumerate(dims):
        coordinates += number // prod(dims[:d]) % size
    total = coordinates[paths.here] + coordinates[paths.target] + rows.rank_class[:, None]
    for d, size in enumerate(dims):
        stride = prod(dims[:d])
        source = number[paths.here] // stride % size
        target = number[paths.target] // stride % size
        over = total % size
        two_hops = (source != target) & (over != source) & (over != target)
        for goal, priority, moving in (
            (over, 0, two_hops),
            (target, two_hops.astype(np.int32), source != target),
        ):
            current = number[paths.here]
            there = switch_of[current + (goal - current // stride % size) * stride]
            key = paths.here.astype(np.int64) * count + np.maximum(there, 0)
            channel = np.where(there >= 0, links.pick(key, paths.turn), np.int32(-1))
            paths.take(channel, moving, priority)
    refuse_apart(task, paths.lost, rows.switch, name)
    return ExplicitRoutes(rows.of_host, *paths.finished(), trees, of_trees)


def _places(task: Task, engine: str) -> tuple[tuple[int, ...], Ints]:
    """Return the sizes, and the number of each switch."""
    member = member_of(task, engine, "hyperx", "fullmesh")
    return member.family.sizes, member.numbers


def _in_order(dims: int) -> Phases:
    """Return the phases of dimension order: phase d + 1 follows a hop in dimension d."""
    steps = [(phase, d, d + 1) for phase in range(dims + 1) for d in range(phase, dims)]
    return Phases.from_steps(steps, priority=[0] * (dims + 1))


def _kinds(task: Task, dims: tuple[int, ...], number: Ints) -> Ints:
    """Return the dimension of each channel."""
    distance = np.abs(number[task.channels.head] - number[task.channels.tail])
    strides = np.array([prod(dims[:d]) for d in range(len(dims))])
    dimension: Ints = np.searchsorted(strides, distance, side="right").astype(np.int32)
    return dimension - 1


HYPERX = Engine(
    name="hyperx",
    summary="HyperX and full meshes: dimension order, one virtual channel",
    route=route,
    rule="A path corrects the first coordinate by one hop, then the second, and so on.",
    proof="Dependencies only lead to later dimensions.",
    use="HyperX, flattened butterflies and full meshes with even traffic. Paths are shortest.",
)
DIMWAR = Engine(
    name="dimwar",
    summary="HyperX and full meshes: up to two hops a dimension, two virtual channels",
    route=route_dimwar,
    rule="In each dimension a path takes up to two hops: to an intermediate coordinate on virtual "
    "channel 0, chosen by source and destination in turn, then to that of the destination on 1.",
    proof="Within a dimension, virtual channel 0 only waits for 1, and 1 for none. All other "
    "dependencies lead to later dimensions.",
    use="HyperX and full meshes with uneven traffic, such as all hosts of a switch to those of "
    "another: it spreads over the links of each dimension, at up to twice the load.",
)
