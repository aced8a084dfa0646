"""UGAL: the first switch sends each frame minimally or over an intermediate, by its own queues.

A frame over an intermediate group or switch takes Valiant's path. The switch compares the direct
path with one such path that it draws at random, by the bytes in the queues of their first outputs,
times their hops (UGAL-L: local information).

References
----------
Singh: Load-balanced routing in interconnection networks, Stanford University, 2005. Kim, Dally,
Scott, Abts: Technology-driven, highly-scalable dragonfly topology, ISCA 2008.

"""

from __future__ import annotations

import numpy as np

from knotless.base.errors import PlanError
from knotless.routing.choices.choice import ChosenRoutes
from knotless.routing.choices.source_choices import (
    SourceTables,
    StagedTable,
    source_choices,
)
from knotless.routing.engine import Engine
from knotless.routing.engines import dragonfly, dragonflyplus
from knotless.routing.engines.sbp import depths
from knotless.routing.engines.valiant import shortest_channels
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Ints, Priorities
from knotless.routing.graphs.state_graph import Mask, plain_graph
from knotless.routing.graphs.task import MAX_VCS, Task
from knotless.routing.phased_routes import broadcast_trees, refuse_apart
from knotless.routing.routes import Routes
from knotless.topologies.spec import member_and_numbers

NAME = "ugal"


def route(task: Task) -> Routes:
    """Return the direct paths and those over intermediates, and broadcast trees.

    On a dragonfly or Dragonfly+, intermediates are groups, and paths are those of Valiant's engines
    there: a link of the current switch to the wanted group is taken if there is one. On other
    fabrics intermediates are switches, paths to them and from them are shortest paths, and the
    virtual channel counts the hops. Of several channels that fit, a switch takes that of number
    (destination or intermediate + switch) modulo how many there are, in the order of ports; so one
    (source switch, destination switch, intermediate) has one path. Between switches of one group
    frames go directly.

    Raises
    ------
    PlanError
        Twice the diameter is more than the virtual channels that there can be; or a dragonfly lacks
        links, or a Dragonfly+ has hosts on spines, so that two switches have no direct path; or
        memory is short.

    """
    member = member_and_numbers(task.fabric)
    family = "" if member is None else member[0].name
    tables_of = {"dragonfly": _of_dragonfly, "dragonflyplus": _of_dragonflyplus}
    tables, trees, of_trees = tables_of.get(family, _of_switches)(task)
    with_hosts = np.flatnonzero(task.receivers)
    refuse_apart(task, tables.direct.T[with_hosts] < 0, with_hosts, NAME)
    rows = rows_in(task, 1)
    none = np.zeros((len(rows.switch), len(task.receivers), 0), dtype=np.int32)
    choices = source_choices(task, tables)
    return ChosenRoutes(rows.of_host, none, none.astype(np.uint8), trees, of_trees, choices)


def _of_dragonfly(task: Task) -> tuple[SourceTables, Ints, Priorities]:
    """Return tables whose virtual channel is the number of global hops before, and trees."""
    local, across = dragonfly.LOCAL, dragonfly.GLOBAL
    group = dragonfly.groups_of(task, NAME)
    kind = dragonfly.kinds_of(task, group)
    direct = StagedTable(task.channels, kind, _each(task))
    near = direct.extend(local, _each(task))
    outside = direct.extend(across, near | _each(task))
    direct.extend(local, outside)
    towards = StagedTable(task.channels, kind, _groups(group))
    towards.extend(local, towards.extend(across, _groups(group)))
    rises = np.zeros((2, 2), dtype=bool)
    rises[across] = True
    trees = broadcast_trees(task, dragonfly.MINIMAL_PHASES, kind, NAME)
    return _tables(direct, towards, group, kind, rises), *trees


def _of_dragonflyplus(task: Task) -> tuple[SourceTables, Ints, Priorities]:
    """Return tables with a second virtual channel from the third group on, and trees.

    A frame that enters the third group by a spine without a link to the destination's group goes
    down to a leaf and up again.
    """
    up, across, down = dragonflyplus.UP, dragonflyplus.GLOBAL, dragonflyplus.DOWN
    group, leaf = dragonflyplus.places_of(task, NAME)
    kind = dragonflyplus.kinds_of(task, group, leaf)
    direct = StagedTable(task.channels, kind, _each(task) & leaf)
    above = direct.extend(down, _each(task) & leaf)
    outside = direct.extend(across, above)
    leaves = direct.extend(up, above | outside)
    direct.extend(down, leaves & (group != group[:, None]))
    towards = StagedTable(task.channels, kind, _groups(group))
    towards.extend(up, towards.extend(across, _groups(group)))
    rises = np.zeros((3, 3), dtype=bool)
    rises[across, across] = rises[down, up] = True
    trees = broadcast_trees(task, dragonflyplus.MINIMAL_PHASES, kind, NAME)
    return _tables(direct, towards, group, kind, rises), *trees


def _of_switches(task: Task) -> tuple[SourceTables, Ints, Priorities]:
    """Return tables of shortest paths, whose virtual channel is the number of hops, and trees."""
    channels, count = task.channels, len(task.channels.names)
    hops = plain_graph(channels).hops()
    diameter = int(hops.max(initial=0))
    if 2 * diameter > MAX_VCS:
        raise PlanError(
            f"{NAME} needs {2 * diameter} virtual channels on {task.fabric.name}, twice the"
            f" diameter; {MAX_VCS} are possible: adaptive takes any fabric"
        )
    following = shortest_channels(task, hops)
    kind, rises = np.zeros(len(channels), dtype=np.uint8), np.ones((1, 1), dtype=bool)
    itself = np.arange(count, dtype=np.int32)
    trees = channels.core.breadth_first_trees()
    of_trees = depths(channels, trees, np.ones(count, dtype=bool))
    return SourceTables(following, following, itself, kind, rises), trees, of_trees


def _each(task: Task) -> Mask:
    """Return each switch as a goal of its own, shape (switches, switches)."""
    return np.eye(len(task.receivers), dtype=bool)


def _groups(group: Ints) -> Mask:
    """Return each group as a goal, shape (groups, switches)."""
    goals: Mask = np.arange(int(group.max()) + 1)[:, None] == group
    return goals


def _tables(
    direct: StagedTable, towards: StagedTable, group: Ints, kind: Ints, rises: Mask
) -> SourceTables:
    return SourceTables(direct.channel, towards.channel, group, kind.astype(np.uint8), rises)


ENGINE = Engine(
    name=NAME,
    summary="minimal or over an intermediate, by the queues of the first switch; simulated only",
    route=route,
    rule="The first switch sends each frame on its direct path or over an intermediate (a group of "
    "a dragonfly or Dragonfly+, else a switch) that it draws: directly if the bytes in the queue "
    "of that output, times the hops, are no more than on the other path. A label fixes the choice. "
    "Virtual channels are those of Valiant's routing: they count global hops on a dragonfly (3), "
    "rise once on a Dragonfly+ (2), and count hops elsewhere (twice the diameter).",
    proof="All direct paths and all paths over any intermediate together only wait for channels of "
    "the same virtual channel in a fixed order, or for a higher virtual channel. So any choice is "
    "safe.",
    use="Fabrics of small diameter whose traffic is now even, now uneven: dragonflies, Dragonfly+, "
    "Slim Fly and PolarFly, full meshes. To see in simulations what it gains. OpenFlow switches "
    "cannot choose by their queues, so there are no rules for it.",
    is_adaptive=True,
)
