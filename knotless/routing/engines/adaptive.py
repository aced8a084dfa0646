"""Adaptive routing: any shortest path, and an escape that cannot deadlock.

A frame waits for all its next hops at once, and takes the first that is free: the switch binds it
to an output when it begins to be sent. These are all channels on shortest paths, on virtual channel
0, and those of an escape on the virtual channels after it. A frame can always leave by the escape,
whose channels wait for each other in no cycle, so that the other channels may wait for each other
as they like.

References
----------
Duato, A new theory of deadlock-free adaptive routing in wormhole networks, 1993; A necessary and
sufficient condition for deadlock-free routing in cut-through and store-and-forward networks, 1996.

"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from knotless._core.graph import is_acyclic
from knotless.base.errors import PlanError
from knotless.routing.choices.adaptive import AdaptiveChoice
from knotless.routing.choices.choice import ChosenRoutes
from knotless.routing.engine import Engine
from knotless.routing.engines import dor, hyperx
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Channels, Ints, Priorities
from knotless.routing.graphs.dimensions import dimension_order, wraps
from knotless.routing.graphs.next_hop_sets import NextHopSets, on_shortest_paths, up_down_channels
from knotless.routing.graphs.spanning_tree import spanning_tree
from knotless.routing.graphs.state_graph import Mask
from knotless.routing.graphs.task import MAX_VCS, Task
from knotless.routing.routes import Routes


@dataclass(frozen=True)
class _Escape:
    """An escape, whose virtual channels count from 1.

    Attributes
    ----------
    taken : array of bool, shape (destination switches, channels)
        The channels that lead to each switch.
    vc : array of uint8, same shape
        The virtual channel on each.
    stays : bool
        Whether a frame stays in it. It must unless its paths are shortest paths, or it could go
        round.
    trees, of_trees : arrays, shape (switches, switches)
        The broadcast trees, and their virtual channels.

    """

    taken: Mask
    vc: Priorities
    stays: bool
    trees: Ints
    of_trees: Priorities


def route(task: Task) -> Routes:
    """Return the sets of next hops, and broadcast trees.

    Frames prefer virtual channel 0. Of its channels, the first in the order of preference is that
    with the number (switch + destination switch) modulo how many there are, in ascending order. The
    escape is the first of these that the fabric and the number of virtual channels allow:

    - none, if the channels of all shortest paths wait for each other in no cycle, as in trees,
    - dimension order, on meshes, tori and HyperX that have all links of such paths,
    - up*/down* from the first switch, in which a frame stays.

    Raises
    ------
    PlanError
        Memory is short.

    """
    shortest, hops = on_shortest_paths(task)
    receives = (task.receivers > 0)[:, None]
    shortest &= receives
    reached = receives & (hops > 0)
    escape = _escape(task, shortest, reached)
    escape = replace(escape, taken=escape.taken & receives)
    rows = rows_in(task, 1)
    none = np.zeros((len(rows.switch), len(hops), 0), dtype=np.int32)
    return ChosenRoutes(
        rows.of_host,
        none,
        none.astype(np.uint8),
        escape.trees,
        escape.of_trees,
        AdaptiveChoice(_sets(task.channels, shortest, escape)),
    )


def _escape(task: Task, shortest: Mask, reached: Mask) -> _Escape:
    if _closes_no_cycle(task.channels, shortest):
        trees = task.channels.core.breadth_first_trees()
        nothing = np.zeros(shortest.shape, dtype=np.uint8)
        return _Escape(nothing > 0, nothing, False, trees, np.zeros(trees.shape, dtype=np.uint8))
    by_dimension = _by_dimension(task, reached)
    if by_dimension is not None and int(by_dimension.vc.max()) < (task.vcs or MAX_VCS):
        return by_dimension
    tree = spanning_tree(task.channels, 0)
    order = np.argsort(tree.level, kind="stable").astype(np.int32)
    taken, _ = up_down_channels(task, tree.rises(), ~tree.rises(), order)
    trees = tree.from_everywhere()
    one = np.ones(taken.shape, dtype=np.uint8)
    return _Escape(taken, one, True, trees, np.where(trees >= 0, 1, 0).astype(np.uint8))


def _by_dimension(task: Task, reached: Mask) -> _Escape | None:
    """Return dimension order as an escape, with two virtual channels on tori that need them.

    A frame is on the first of these until it has passed the wrap-around link of a dimension, if it
    will, and otherwise on the second: so this depends on the switch and the destination alone.
    None: the fabric has no dimensions, or lacks links.
    """
    order = dimension_order(task)
    if order is None or (reached & ~_leads_on(task.channels, order)).any():
        return None
    try:
        engine = dor if task.fabric.grid is not None else hyperx
        routes = engine.route(replace(task, vcs=None, select="spread"))
    except PlanError:
        return None
    vc = np.ones(order.shape, dtype=np.uint8)
    if not _closes_no_cycle(task.channels, order):
        vc += ~wraps(task)
    of_trees = np.where(routes.tree_channels >= 0, routes.tree_priorities + 1, 0)
    return _Escape(order, vc, False, routes.tree_channels, of_trees.astype(np.uint8))


def _leads_on(channels: Channels, taken: Mask) -> Mask:
    """Return whether a channel leads on to each switch from each, (destinations, switches)."""
    leads_on = np.zeros((len(taken), len(channels.names)), dtype=np.bool_)
    destination, channel = np.nonzero(taken)
    leads_on[destination, channels.tail[channel]] = True
    return leads_on


def _closes_no_cycle(channels: Channels, taken: Mask) -> bool:
    """Return whether channels that packets take one after the other form no cycle."""
    before, after = [], []
    for switch in range(len(channels.names)):
        arriving = np.flatnonzero(channels.head == switch)
        leaving = np.flatnonzero(channels.tail == switch)
        both = taken[:, arriving].astype(np.float32).T @ taken[:, leaving].astype(np.float32)
        held, requested = np.nonzero(both)
        before.append(arriving[held])
        after.append(leaving[requested])
    edges = (np.concatenate(ends).astype(np.int32) for ends in (before, after))
    return is_acyclic(len(channels), *edges)


def _sets(channels: Channels, shortest: Mask, escape: _Escape) -> NextHopSets:
    """Return the sets: shortest paths on virtual channel 0 by preference, then the escape."""
    count = len(channels.names)
    destination, channel = np.nonzero(shortest)
    tails = channels.tail[channel]
    cell = destination * count + tails
    sizes = np.bincount(cell, minlength=count * count)
    number = np.zeros(len(cell), dtype=np.int64)
    number[np.argsort(cell, kind="stable")] = np.arange(len(cell)) - np.repeat(
        np.cumsum(sizes) - sizes, sizes
    )
    to, channel_taken = np.nonzero(escape.taken)
    cells = np.concatenate([cell, to * count + channels.tail[channel_taken]])
    vcs = np.concatenate([np.zeros(len(cell), dtype=np.uint8), escape.vc[to, channel_taken]])
    places = np.concatenate([(number - tails - destination) % sizes[cell], channel_taken])
    order = np.lexsort((places, vcs > 0, cells))
    ends = np.cumsum(np.bincount(cells, minlength=count * count)).astype(np.uint32)
    taken = np.concatenate([channel, channel_taken])[order].astype(np.int32)
    return NextHopSets(ends.reshape(count, count), taken, vcs[order], escape.stays)


ENGINE = Engine(
    name="adaptive",
    summary="the first free channel of all shortest paths, with an escape; simulated only",
    route=route,
    rule="A frame waits for all channels on shortest paths to its destination, on virtual channel "
    "0, and for the escape on the next ones, and takes the first that is free. The escape is "
    "dimension order on meshes, tori and HyperX, and up*/down* elsewhere; where shortest paths "
    "close no cycle, as in trees, there is none.",
    proof="A frame can always leave by the escape, whose channels only wait for each other in an "
    "order. So no set of virtual channels can be blocked for ever, although the dependencies of "
    "virtual channel 0 may have cycles. It needs switches that bind a frame to its output when it "
    "begins to be sent, and priorities that pause separately.",
    use="To see in simulations what adaptive routing gains under uneven traffic. OpenFlow switches "
    "choose on arrival, so there are no rules for it.",
    is_adaptive=True,
)
