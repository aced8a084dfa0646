"""Routes of shortest paths in phases, and their broadcast trees, for engines of one family."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.routing.graphs.balance import balanced_paths
from knotless.routing.graphs.channels import Ints, Priorities
from knotless.routing.graphs.phases import Phases
from knotless.routing.graphs.state_graph import FAR, Mask
from knotless.routing.graphs.task import Task
from knotless.routing.routes import ExplicitRoutes, Routes


def routes_in_phases(task: Task, phases: Phases, kind: Ints, engine: str) -> Routes:
    """Return shortest legal paths, balanced, and broadcast trees of legal paths.

    Raises
    ------
    PlanError
        No legal path connects two switches with hosts.

    """
    graph = phases.graph(task.channels, kind)
    with_hosts = np.flatnonzero(task.receivers)
    refuse_apart(task, graph.hops().T[with_hosts] >= FAR, with_hosts, engine)
    rows, paths, priorities = balanced_paths(task, graph)
    trees, of_trees = broadcast_trees(task, phases, kind, engine)
    return ExplicitRoutes(rows.of_host, paths, priorities, trees, of_trees)


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
        names = task.channels.names
        raise PlanError(
            f"{engine} has no path from {names[sources[row]]} to {names[target]} on"
            f" {task.fabric.name}, which lacks links; updown runs on any fabric"
        )
