"""Routes of shortest paths in phases, and their broadcast trees, for engines of one family."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.routing.graphs.balance import balanced_paths, balanced_tables
from knotless.routing.graphs.channels import Ints, Priorities
from knotless.routing.graphs.phases import Phases
from knotless.routing.graphs.state_graph import Mask
from knotless.routing.graphs.task import Task
from knotless.routing.routes import ExplicitRoutes, Routes, TableRoutes


def routes_in_phases(task: Task, phases: Phases, kind: Ints, engine: str) -> Routes:
    """Return shortest legal paths, balanced, and broadcast trees of legal paths.

    They are next-hop tables: one if there is one path between any two switches, otherwise one for
    each rank of hosts. Where tables cannot hold the paths
    (:func:`~knotless.routing.graphs.balance.balanced_tables`), they are written out.

    Raises
    ------
    PlanError
        No legal path connects two switches with hosts, or there is too little memory.

    """
    graph = phases.graph(task.channels, kind)
    try:
        tables = balanced_tables(task, graph)
    except LookupError as apart:
        raise _no_path(task, engine, *apart.args) from None
    trees, of_trees = broadcast_trees(task, phases, kind, engine)
    if tables is None:
        rows, paths, priorities = balanced_paths(task, graph)
        return ExplicitRoutes(rows.of_host, paths, priorities, trees, of_trees)
    rows, next_hop, first, changes = tables
    return TableRoutes(
        rows.of_host,
        task.channels,
        rows.switch,
        rows.rank_class,
        next_hop,
        first,
        changes,
        trees,
        of_trees,
        task.columns,
    )


def broadcast_trees(task: Task, phases: Phases, kind: Ints, engine: str) -> tuple[Ints, Priorities]:
    """Return broadcast trees of legal paths; raises PlanError if one misses a switch with hosts."""
    trees, of_trees = phases.trees(task.channels, kind)
    with_hosts = np.flatnonzero(task.receivers)
    refuse_apart(task, trees[with_hosts] < 0, with_hosts, engine)
    return trees, of_trees


def refuse_apart(task: Task, apart: Mask, sources: NDArray[np.integer], engine: str) -> None:
    """Raise PlanError if an engine has no path from one of ``sources`` to a switch with hosts.

    ``apart`` tells for each source and switch whether it has none, shape (sources, switches).
    """
    apart = apart & (task.receivers > 0) & (np.arange(len(task.receivers)) != sources[:, None])
    if apart.any():
        row, target = np.argwhere(apart)[0]
        raise _no_path(task, engine, sources[row], target)


def _no_path(task: Task, engine: str, source: int, target: int) -> PlanError:
    names = task.channels.names
    return PlanError(
        f"{engine} has no path from {names[source]} to {names[target]} on {task.fabric.name},"
        " which lacks links; updown runs on any fabric"
    )
