"""Dragonflies: minimal paths on two virtual channels, Valiant's over a third group on three.

References
----------
Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, ISCA 2008.

"""

from __future__ import annotations

import numpy as np

from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.family_members import member_of
from knotless.routing.graphs.phases import Phases
from knotless.routing.graphs.segments import GlobalLinks, SegmentedPaths, between_switches
from knotless.routing.graphs.task import Task
from knotless.routing.phased_routes import broadcast_trees, refuse_apart, routes_in_phases
from knotless.routing.routes import ExplicitRoutes, Routes

LOCAL, GLOBAL = 0, 1
MINIMAL_PHASES = Phases.from_steps(
    [(0, LOCAL, 1), (0, GLOBAL, 2), (1, GLOBAL, 2), (2, LOCAL, 3)], priority=[0, 0, 0, 1]
)
"""Phases: begin; after a local, a global, and the last local channel."""
_LONGEST = 5


def route(task: Task) -> Routes:
    """Return the shortest paths of a local, a global and a local hop, each at most once.

    The last local hop is on virtual channel 1. With one link between any two groups there is one
    such path between two switches, and one next-hop table holds all; ties, and links in parallel,
    are balanced by load, with a table for each rank of hosts. See
    :func:`knotless.routing.phased_routes.routes_in_phases`.

    Raises
    ------
    PlanError
        The fabric is no dragonfly, or lacks the links of such a path.

    """
    kind = kinds_of(task, groups_of(task, "dragonfly"))
    return routes_in_phases(task, MINIMAL_PHASES, kind, "dragonfly")


def route_valiant(task: Task) -> Routes:
    """Return Valiant's paths: minimal to a third group, and from there minimal.

    Rows of hosts (rank by rank, switch by switch) and destination switches have numbers; their sum
    is the turn of a pair. The third group is the (turn + layer modulo their number)-th of those
    that have a link to both groups. A link of the current switch is taken if there is one,
    otherwise the links between two groups take turns. The virtual channel of a hop is the number of
    global hops before it. Within a group, and if there is no third group, paths are minimal.

    Raises
    ------
    PlanError
        The fabric is no dragonfly, or lacks the links of such a path.

    """
    name = "dragonfly-valiant"
    group, channels = groups_of(task, name), task.channels
    kind = kinds_of(task, group)
    trees, of_trees = broadcast_trees(task, MINIMAL_PHASES, kind, name)
    rows = rows_in(task, task.ranks if task.select == "spread" else 1)
    paths, count = SegmentedPaths(channels, rows, _LONGEST), len(channels.names)
    links, local = GlobalLinks(channels, group), between_switches(channels, kind == LOCAL)
    crossed = np.zeros(paths.here.shape, dtype=np.int32)
    for goal in (links.third_groups(paths, task.layer), group[paths.target]):
        moving = group[paths.here] != goal
        channel = links.of_group(paths, goal)
        paths.lost |= moving & (channel < 0)
        exit_switch = paths.tail[channel]
        hop = local.pick(paths.here.astype(np.int64) * count + exit_switch, paths.turn)
        paths.take(hop, moving & (exit_switch != paths.here), crossed)
        paths.take(channel, moving, crossed)
        crossed += moving
    last = local.pick(paths.here.astype(np.int64) * count + paths.target, paths.turn)
    paths.take(last, paths.here != paths.target, crossed)
    refuse_apart(task, paths.lost, rows.switch, name)
    return ExplicitRoutes(rows.of_host, *paths.finished(), trees, of_trees)


def groups_of(task: Task, engine: str) -> Ints:
    """Return the group of each switch."""
    member = member_of(task, engine, "dragonfly")
    return (member.numbers // member.family.options["a"]).astype(np.int32)


def kinds_of(task: Task, group: Ints) -> Ints:
    """Return the kind of each channel."""
    return np.where(group[task.channels.tail] == group[task.channels.head], LOCAL, GLOBAL)


MINIMAL = Engine(
    name="dragonfly",
    summary="dragonflies: local, global, local hop, on two virtual channels",
    route=route,
    rule="A path takes a local link to the switch with a global link to the destination's group, "
    "that link, and a local link to the destination. The last hop is on virtual channel 1.",
    proof="A local channel on virtual channel 0 only waits for a global one, a global one for a "
    "local one on virtual channel 1, and that one for none.",
    use="Dragonflies of any size with traffic between all groups. If few groups send to few, the "
    "single link between two groups limits them.",
)
VALIANT = Engine(
    name="dragonfly-valiant",
    summary="dragonflies: over a third group, on three virtual channels",
    route=route_valiant,
    has_layers=True,
    rule="A path goes to a third group, chosen by source and destination in turn, and from there "
    "to the destination, minimally each time. The virtual channel is the number of global hops "
    "so far.",
    proof="A local channel waits for a global one of the same virtual channel, a global one for a "
    "channel of the next, so virtual channels never fall.",
    use="Dragonflies with traffic between few groups, such as all hosts of a group to the next "
    "group: it spreads over all global links, at twice the load.",
)
