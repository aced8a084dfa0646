"""From chosen walks to routes: the part that all engines that use state graphs share."""

from __future__ import annotations

import numpy as np

from routing.channels import Ints
from routing.engine import Task
from routing.walks import StateGraph, stack_paths, walk_edges


def walk_all(task: Task, graph: StateGraph, choices: list[Ints]) -> tuple[Ints, Ints]:
    """Follow the choices from the switch of every host to every switch.

    Hosts of rank r follow ``choices[r % len(choices)]``; rows are ordered by (that, switch).

    Returns
    -------
    rows : (hosts,)
        The row of each host.
    edges : (rows, switches, longest)
        The edges of ``graph`` taken, then -1.

    """
    planes = np.array(task.host_ranks) % len(choices)
    keys = planes * len(graph.start) + np.array(task.host_switches)
    used, rows = np.unique(keys, return_inverse=True)
    plane, at = np.divmod(used, len(graph.start))
    walks = [
        walk_edges(graph, choices[p], at[plane == p].astype(np.int32))
        for p in np.unique(plane).tolist()
    ]
    return rows.astype(np.int32), stack_paths(walks)


def channels_along(graph: StateGraph, edges: Ints) -> Ints:
    """Return the channels that ``edges`` take, -1 where there is none."""
    if len(graph.channel) == 0:
        return edges
    return np.where(edges >= 0, graph.channel[edges], -1).astype(np.int32)
