"""Shortest walks spread by load: each destination's tree avoids what the ones before it fill.

The walks of one rank of hosts to one destination are chosen together, so that they agree at
every state (and can share a VLAN); then the next rank's, the next destination's, with the loads
of those before in mind. In a second round each tree is taken out and chosen again, knowing all
the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from knotless_core import graph as core
from routing.graphs.channels import Ints, Priorities
from routing.graphs.task import Task

ROUNDS = 2
"""A third round lowers the largest load by about 1 %, measured on tori and random graphs."""


@dataclass(frozen=True)
class Rows:
    """Hosts of one rank (plane) on one switch have the same paths, a row, ordered by both.

    of_host : (hosts,) the row of each host.
    plane, at, senders : (rows,) the rank modulo the planes, the switch, and how many hosts.
    """

    of_host: Ints
    plane: Ints
    at: Ints
    senders: Ints


def rows_in(task: Task, planes: int) -> Rows:
    """Return the rows when hosts of rank r are in plane r modulo ``planes``."""
    switches = len(task.channels.names)
    return Rows(*core.rows(task.host_switches, task.host_ranks, planes, switches))


def balanced_paths(
    task: Task, graph: core.StateGraph, planes: int | None = None
) -> tuple[Rows, Ints, Priorities]:
    """Choose a shortest path from every host to every switch with hosts.

    ``spread`` takes the way whose channels are least loaded by all that was chosen before, the
    lowest port where that is equal; each rank of hosts is a plane of its own, or as many ranks
    share one that there are ``planes``. ``low-port``
    takes the lowest port at each state.

    Returns
    -------
    rows
        Who takes which paths.
    channels, priorities : (rows, switches, longest)
        The channels, then -1, and the priority of each, 0 where there is none.

    """
    spread = task.select == "spread"
    rows = rows_in(task, planes or (task.ranks if spread else 1))
    rounds = ROUNDS if spread else 0
    paths = graph.balanced_paths(rows.plane, rows.at, rows.senders, task.receivers, rounds)
    return rows, *paths
