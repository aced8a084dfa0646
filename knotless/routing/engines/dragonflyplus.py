"""Dragonfly+: minimal paths on one virtual channel, Valiant's over a third group on two.

References
----------
Shpiner, Haramaty, Eliad, Zdornov, Gafni, Zahavi: Dragonfly+: low cost topology for scaling
datacenters, HiPINEB 2017.

"""

from __future__ import annotations

import numpy as np

from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.family_members import member_of
from knotless.routing.graphs.phases import Phases
from knotless.routing.graphs.segments import (
    Choices,
    GlobalLinks,
    SegmentedPaths,
    between_switches,
)
from knotless.routing.graphs.state_graph import Mask
from knotless.routing.graphs.task import Task
from knotless.routing.phased_routes import broadcast_trees, refuse_apart, routes_in_phases
from knotless.routing.routes import ExplicitRoutes, Routes

UP, GLOBAL, DOWN = 0, 1, 2
MINIMAL_PHASES = Phases.from_steps(
    [(0, UP, 1), (1, GLOBAL, 2), (1, DOWN, 3), (2, DOWN, 3)], priority=[0, 0, 0, 0]
)
"""Phases: begin; after a channel up, a global one, one down."""
_LONGEST = 6


def route(task: Task) -> Routes:
    """Return the shortest paths up, over a global link if needed, and down.

    Ties, and links in parallel, are balanced by load, with a next-hop table for each rank of hosts:
    see :func:`knotless.routing.phased_routes.routes_in_phases`.

    Raises
    ------
    PlanError
        The fabric is no Dragonfly+, a spine has hosts, or links of such a path are missing.

    """
    group, leaf = places_of(task, "dragonflyplus")
    return routes_in_phases(task, MINIMAL_PHASES, kinds_of(task, group, leaf), "dragonflyplus")


def route_valiant(task: Task) -> Routes:
    """Return Valiant's paths: minimal to a third group, and from there minimal.

    Rows of hosts (rank by rank, switch by switch) and destination switches have numbers; their sum
    is the turn of a pair. The third group is the (turn + layer modulo their number)-th of those
    that have a link to both groups. If the spine that a path enters there has a link to the
    destination's group, the path takes it; otherwise it goes down to a leaf, and up on virtual
    channel 1. The second global hop and all after it are on virtual channel 1. Links, and leaves,
    take turns. Within a group, and if there is no third group, paths are minimal.

    Raises
    ------
    PlanError
        The fabric is no Dragonfly+, a spine has hosts, or links of such a path are missing.

    """
    name = "dragonflyplus-valiant"
    (group, leaf), channels = places_of(task, name), task.channels
    kind = kinds_of(task, group, leaf)
    trees, of_trees = broadcast_trees(task, MINIMAL_PHASES, kind, name)
    rows = rows_in(task, task.ranks if task.select == "spread" else 1)
    paths, count = SegmentedPaths(channels, rows, _LONGEST), len(channels.names)
    links, local = GlobalLinks(channels, group), between_switches(channels, kind != GLOBAL)
    ups, downs = (np.flatnonzero(kind == which).astype(np.int32) for which in (UP, DOWN))
    up, down = (Choices.grouped(some, channels.tail[some], count) for some in (ups, downs))
    target_group = group[paths.target]
    over = links.third_groups(paths, task.layer)
    apart = paths.here != paths.target
    again = np.zeros(paths.here.shape, dtype=np.int32)  # the virtual channel
    for goal in (over, target_group):
        moving = group[paths.here] != goal
        to_leaf = moving & ~leaf[paths.here] & (links.own(paths, goal) < 0)
        paths.take(down.pick(paths.here, paths.turn), to_leaf, again)
        again += moving & (goal == target_group) & (over != target_group)
        channel = links.of_group(paths, goal)
        exit_switch = paths.tail[channel]
        hop = local.pick(paths.here.astype(np.int64) * count + exit_switch, paths.turn)
        paths.take(hop, moving & (exit_switch != paths.here), again)
        paths.take(channel, moving, again)
    at_leaf = apart & leaf[paths.here] & leaf[paths.target]
    paths.take(up.pick(paths.here, paths.turn), at_leaf, again)
    last = local.pick(paths.here.astype(np.int64) * count + paths.target, paths.turn)
    paths.take(last, apart, again)
    refuse_apart(task, paths.lost, rows.switch, name)
    return ExplicitRoutes(rows.of_host, *paths.finished(), trees, of_trees)


def places_of(task: Task, engine: str) -> tuple[Ints, Mask]:
    """Return the group of each switch, and whether it is a leaf."""
    member = member_of(task, engine, "dragonflyplus")
    leaves, spines, h, g = (member.family.options[key] for key in ("l", "s", "h", "g"))
    first = (g or spines * h + 1) * leaves
    leaf = member.numbers < first
    group = np.where(leaf, member.numbers // leaves, (member.numbers - first) // spines)
    return group.astype(np.int32), leaf


def kinds_of(task: Task, group: Ints, leaf: Mask) -> Ints:
    """Return the kind of each channel."""
    tail, head = task.channels.tail, task.channels.head
    kind = np.where(group[tail] != group[head], GLOBAL, np.where(leaf[tail], UP, DOWN))
    return kind.astype(np.int32)


MINIMAL = Engine(
    name="dragonflyplus",
    summary="Dragonfly+: up, over a global link, down, on one virtual channel",
    route=route,
    rule="A path goes up to a spine with a global link to the destination's group, takes that "
    "link, and goes down to the destination.",
    proof="A channel up waits for a global one or one down, a global one for one down, and that "
    "one for none.",
    use="Dragonfly+ with traffic between all groups.",
)
VALIANT = Engine(
    name="dragonflyplus-valiant",
    summary="Dragonfly+: over a third group, on two virtual channels",
    route=route_valiant,
    has_layers=True,
    rule="A path goes to a third group, chosen by source and destination in turn, and from there "
    "to the destination, minimally each time. From the third group on it is on virtual channel 1.",
    proof="On each virtual channel a path goes up, over a global link and down. It never comes "
    "back to virtual channel 0.",
    use="Dragonfly+ with traffic between few groups: it spreads over all global links, at twice "
    "the load.",
)
