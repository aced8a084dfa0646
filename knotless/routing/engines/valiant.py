"""Valiant's routing: minimal to an intermediate switch, and from there minimal.

References
----------
Valiant, Brebner: Universal schemes for parallel communication, 1981. Besta, Hoefler: Slim Fly: a
cost effective low-diameter network topology, SC 2014, for virtual channels that count hops.

"""

from __future__ import annotations

import numpy as np

from knotless.base.errors import PlanError
from knotless.routing.engine import Engine
from knotless.routing.engines.sbp import depths
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.segments import Choices, SegmentedPaths
from knotless.routing.graphs.state_graph import Mask, plain_graph
from knotless.routing.graphs.task import MAX_VCS, Task
from knotless.routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return paths over an intermediate switch; the virtual channel is the number of hops so far.

    Rows of hosts (rank by rank, switch by switch) and destination switches have numbers; their sum
    is the turn of a pair. The intermediate switch is that of number (turn + layer + 1) modulo the
    switches, or the next one with which the path passes no switch twice; if there is none, the path
    is minimal. Between two switches all paths take the same shortest one: of the channels that are
    on a shortest path, the (sum of the numbers of both switches)-th in the order of ports.

    With one virtual channel on a full mesh, links are ordered instead: the link from switch a to
    switch b, of n, has the number (b - a) modulo n, and of the intermediate switches to which the
    first link has the lower number, the path takes the (turn + layer)-th. These are about half of
    all, and each link is in as many such paths.

    Raises
    ------
    PlanError
        Twice the diameter is more than the virtual channels that there can be.

    """
    channels, count = task.channels, len(task.channels.names)
    hops = plain_graph(channels).hops()
    diameter = int(hops.max(initial=0))
    ordered = diameter == 1 and task.vcs == 1
    if 2 * diameter > MAX_VCS:
        raise PlanError(
            f"valiant needs {2 * diameter} virtual channels on {task.fabric.name}, twice the"
            f" diameter; {MAX_VCS} are possible: dl routes any fabric"
        )
    following = shortest_channels(task, hops)
    rows = rows_in(task, task.ranks if task.select == "spread" else 1)
    paths = SegmentedPaths(channels, rows, 2 * diameter)
    if ordered:
        over = _in_order(paths, task.layer)
    else:
        over = _intermediate(following, channels.head, paths, diameter, task.layer)
    for goal in (over, paths.target):
        for _ in range(diameter):
            priority = 0 if ordered else paths.length
            paths.take(following[goal, paths.here], paths.here != goal, priority)
    trees = channels.core.breadth_first_trees()
    every = np.ones(count, dtype=bool)
    return ExplicitRoutes(rows.of_host, *paths.finished(), trees, depths(channels, trees, every))


def shortest_channels(task: Task, hops: Ints) -> Ints:
    """Return the channel on which each switch sends to each destination: (destination, switch)."""
    channels, count = task.channels, len(task.channels.names)
    to, channel = np.nonzero(hops[:, channels.head] + 1 == hops[:, channels.tail])
    keys = to * count + channels.tail[channel]
    choices = Choices.grouped(channel.astype(np.int32), keys, count * count)
    numbers = np.arange(count, dtype=np.int64)
    key = numbers[:, None] * count + numbers[None, :]
    return choices.pick(key, numbers[:, None] + numbers[None, :])


def _intermediate(
    following: Ints, head: Ints, paths: SegmentedPaths, diameter: int, layer: int
) -> Ints:
    """Return the intermediate switch of each path; its destination if there is none."""
    count = len(following)
    over = paths.target.copy()
    open_pairs = np.argwhere(paths.here != paths.target)
    for step in range(1, count + 1):
        if not len(open_pairs):
            break
        row, target = open_pairs.T
        source = paths.here[row, target]
        via = ((paths.turn[row, target] + layer + step) % count).astype(np.int32)
        fits = _is_simple(following, head, source, via, target.astype(np.int32), diameter)
        fits &= (via != source) & (via != target)
        over[row[fits], target[fits]] = via[fits]
        open_pairs = open_pairs[~fits]
    return over


def _in_order(paths: SegmentedPaths, layer: int) -> Ints:
    """Return the intermediate switch of each path of two ordered links; else its destination."""
    count = paths.here.shape[1]
    both = np.arange(count)
    first, second = np.nonzero((both[:, None] < both) & (both[:, None] > 0))
    over = Choices.grouped(first.astype(np.int32), (first + second) % count, count)
    step = over.pick((paths.target - paths.here) % count, paths.turn + layer)
    via = np.where(step >= 0, (paths.here + step) % count, paths.target)
    return np.where(paths.here == paths.target, paths.target, via).astype(np.int32)


def _is_simple(
    following: Ints, head: Ints, source: Ints, via: Ints, target: Ints, diameter: int
) -> Mask:
    """Tell whether the path of each (source, via, target) passes no switch twice."""
    here = source
    visited = [source]
    for goal in (via, target):
        for _ in range(diameter):
            moving = here != goal
            here = np.where(moving, head[following[goal, here]], here)
            visited.append(np.where(moving, here, np.int32(-1)))
    passed = np.sort(np.stack(visited, axis=1), axis=1)
    result: Mask = ~((passed[:, 1:] == passed[:, :-1]) & (passed[:, 1:] >= 0)).any(axis=1)
    return result


ENGINE = Engine(
    name="valiant",
    summary="over an intermediate switch; the virtual channel counts the hops",
    route=route,
    has_layers=True,
    rule="A path goes to an intermediate switch, chosen by source and destination in turn, and "
    "from there to the destination, minimally each time. At each hop it moves to the next virtual "
    "channel. With one on a full mesh, the two links of a path are in ascending order.",
    proof="A packet only waits for a higher virtual channel than the one it holds; with ordered "
    "links, only for a link of a higher number.",
    use="Fabrics of small diameter with uneven traffic: Slim Fly and PolarFly (4 virtual "
    "channels), full meshes (2, or 1 with half of the intermediate switches). It spreads "
    "any traffic, at twice the load.",
)
