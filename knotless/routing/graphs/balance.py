"""Shortest paths balanced by load: each destination's tree avoids channels with high load.

The paths of one rank of hosts to one destination are chosen together, so that they agree at every
state and can share a VLAN. Then follow the next rank and the next destination, given the load of
all earlier ones. In a second round each tree is removed and chosen again, given the load of all
others.
"""

from __future__ import annotations

from dataclasses import dataclass

from knotless._core import graph as core
from knotless.base.errors import PlanError
from knotless.base.memory import Cost, refuse_beyond
from knotless.routing import path_memory
from knotless.routing.graphs.channels import Ints, Priorities
from knotless.routing.graphs.task import Task

ROUNDS = 2
"""A third round would reduce the largest load by about 1 % (measured on tori, random graphs)."""


@dataclass(frozen=True)
class Rows:
    """The rows of the routes: the hosts of a switch in one rank class share a row.

    of_host : (hosts,) the row of each host.
    rank_class, switch, host_count : (rows,) the class of the ranks, the switch, and the number of
        hosts; rows are sorted by rank class and switch.
    """

    of_host: Ints
    rank_class: Ints
    switch: Ints
    host_count: Ints


def rows_in(task: Task, rank_classes: int) -> Rows:
    """Return the rows; hosts of rank r are in class r modulo ``rank_classes``."""
    switches = len(task.channels.names)
    return Rows(*core.rows(task.host_switches, task.host_ranks, rank_classes, switches))


def balanced_paths(
    task: Task, graph: core.StateGraph, rank_classes: int | None = None
) -> tuple[Rows, Ints, Priorities]:
    """Choose a shortest path from every host to every switch with hosts.

    ``spread`` takes the path whose channels have the lowest load so far, the lowest port on a
    tie; hosts are divided into ``rank_classes`` by rank. ``low-port`` takes the lowest port at each
    state.

    Returns
    -------
    rows
        The rows of the paths.
    channels, priorities : (rows, switches, longest)
        The channels, then -1, and the priority of each, 0 where there is none.

    Raises
    ------
    PlanError
        The paths need more memory than is free.

    """
    spread = task.select == "spread"
    rows = rows_in(task, rank_classes or (task.ranks if spread else 1))
    rounds = ROUNDS if spread else 0
    states, _ = graph.states()
    max_hops = path_memory.max_hops(len(rows.switch) * len(task.receivers) * len(states))
    try:
        paths = graph.balanced_paths(
            rows.rank_class, rows.switch, rows.host_count, task.receivers, rounds, max_hops
        )
    except OverflowError as error:
        raise path_memory.too_long(len(rows.switch), len(task.receivers), error.args[0]) from None
    return rows, *paths


def balanced_tables(
    task: Task, graph: core.StateGraph
) -> tuple[Rows, core.NextHops, Priorities, Ints] | None:
    """Choose the paths of :func:`balanced_paths` in the form of next-hop tables.

    There is one table for each rank of hosts; a single one with ``low-port``, or if there is only
    one shortest path between any two switches.

    Returns
    -------
    rows
        The rows of the paths; their rank class is the number of their table.
    next_hop, first_priority, changes
        As in :class:`knotless.routing.routes.TableRoutes`, with a column for each switch that has
        hosts, in their order.

    None is returned if tables cannot hold the paths: those of one rank to one switch leave a
    switch on several channels, or have several priorities at first.

    Raises
    ------
    LookupError
        There is no path from the first argument, a switch with hosts, to the second one.
    PlanError
        The tables need more memory than is free.

    """
    rank_classes, rounds, receivers = 1, 0, task.receivers
    while True:
        rows = rows_in(task, rank_classes)
        hosts = rows.rank_class, rows.switch, rows.host_count
        tables, is_choice = graph.balanced_tables(*hosts, receivers, rounds)
        if rounds or not is_choice or task.select != "spread":
            return None if tables is None else (rows, *tables)
        rank_classes, rounds = task.ranks, ROUNDS
        count = rank_classes * len(receivers) * int((receivers > 0).sum())
        what = f"{task.fabric.name}: {rank_classes} next-hop tables"
        refuse_beyond(what, Cost.NEXT_HOP.bytes_for(count), PlanError)
