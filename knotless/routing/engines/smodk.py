"""S-mod-k: on trees, the source determines the up-links, so that its paths form a tree.

References
----------
Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging, section 3.2.2, which assigns the
hosts of fat-trees and Myrinet-Clos networks to VLANs in this way. The name is from Rodriguez et
al., Oblivious routing schemes in extended generalized fat tree networks, 2009.

"""

from __future__ import annotations

import numpy as np

from knotless._core.graph import is_acyclic, last_hops
from knotless.base.errors import PlanError
from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import Rows, rows_in
from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.graphs.dependencies import virtual_channel
from knotless.routing.graphs.spanning_tree import pruned
from knotless.routing.graphs.state_graph import plain_graph
from knotless.routing.graphs.task import Task
from knotless.routing.routes import ExplicitRoutes, Routes, dependencies

UNUSED_LEVEL = 1 << 40
"""More than the number of hosts: all further digits are 0."""


def route(task: Task) -> Routes:
    """Return shortest paths whose channels are selected by the digits of the source's number.

    If k channels are on shortest paths to the destination, a base-k digit of the number selects
    one: on the way up the next digit at each switch, and in the second half of the path the same
    digits in reverse order, so that the way down mirrors the way up. With ``spread`` the number
    is the host's: the index of its switch among those with hosts, times the hosts per switch,
    plus the host's rank. With ``low-port`` it is the index of the switch. Broadcasts take the
    paths of their switch's first host. One virtual channel.

    On other fabrics than trees these paths can close a cycle; such fabrics are refused.

    Raises
    ------
    PlanError
        The channel dependencies have a cycle.

    """
    channels = task.channels
    rows = rows_in(task, task.ranks if task.select == "spread" else 1)
    leaf = np.cumsum(task.receivers > 0) - 1
    numbers = leaf[rows.switch] * (int(rows.rank_class.max()) + 1) + rows.rank_class
    paths = _follow(channels, rows, numbers)
    none = np.zeros(paths.shape, dtype=np.uint8)
    first = np.count_nonzero(rows.rank_class == 0)  # those rows come first
    trees, of_trees = last_hops(paths[:first], none[:first], rows.switch[:first])
    trees = pruned(channels, trees, task.receivers > 0)
    routes = ExplicitRoutes(rows.of_host, paths, none, trees, of_trees)
    edges = dependencies(channels, routes, task.receivers)
    if not is_acyclic(virtual_channel(len(channels), 0), *edges):
        raise PlanError(
            f"smodk is made for trees: on {task.fabric.name} its paths close a cycle;"
            " updown runs on any fabric"
        )
    return routes


def _follow(channels: Channels, rows: Rows, numbers: Ints) -> Ints:
    """Return (rows, switches, longest): the path of each row to every switch."""
    count = len(channels.names)
    hops = plain_graph(channels).hops()
    # All channels on shortest paths, sorted by (destination, tail), and the first index of each.
    to, shorter = np.nonzero(hops[:, channels.head] + 1 == hops[:, channels.tail])
    cells = to * count + channels.tail[shorter]
    first = np.searchsorted(cells, np.arange(count * count + 1))
    choices = np.maximum(np.diff(first), 1)
    reached = np.repeat(rows.switch[:, None], count, axis=1)
    destinations = np.arange(count)[None, :]
    length = hops[:, rows.switch].T
    longest = int(length.max(initial=0))
    paths = np.full((len(rows.switch), count, longest), -1, dtype=np.int32)
    base = np.ones((longest + 1, *reached.shape), dtype=np.int64)
    for hop in range(longest):
        moving = reached != destinations
        cell = destinations * count + reached
        level = np.maximum(np.minimum(hop, length - 2 - hop), 0)
        of_level = np.take_along_axis(base, level[None], axis=0)[0]
        digit = numbers[:, None] // of_level % choices[cell]
        base[hop + 1] = np.minimum(base[hop] * choices[cell], UNUSED_LEVEL)
        channel = shorter[np.where(moving, first[cell] + digit, 0)]
        paths[:, :, hop] = np.where(moving, channel, -1)
        reached = np.where(moving, channels.head[channel], reached)
    return paths


ENGINE = Engine(
    name="smodk",
    summary="trees: shortest paths by the digits of the source (s-mod-k), one tree per source",
    route=route,
    rule="A path goes up, then down. At each switch with several shortest paths, a digit of "
    "the source's number selects one.",
    proof="The engine checks the dependencies of its paths and refuses a fabric on which they "
    "have a cycle. In a tree they have none: a path never goes up after it went down.",
    use="Fat-trees under traffic in which few sources send to many destinations; each "
    "source has one tree.",
)
