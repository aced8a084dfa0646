"""The tiers of multi-level trees: how far a switch is from the hosts."""

from __future__ import annotations

import numpy as np

from knotless_core.graph import StateGraph
from routing.graphs.channels import Ints
from routing.graphs.state_graph import FAR
from routing.graphs.task import Task


def tiers(task: Task) -> Ints | None:
    """Return the tier of each switch, or None where some link joins switches of one tier.

    The tier is the hops to the nearest switch with hosts.
    """
    channels = task.channels
    with_hosts = np.flatnonzero(task.receivers).astype(np.int32)
    _, tier = channels.core.breadth_first(with_hosts)
    return None if (tier[channels.head] == tier[channels.tail]).any() else tier


def joined(task: Task, graph: StateGraph) -> bool:
    """Tell whether ``graph`` has a walk between every two switches with hosts."""
    at = np.flatnonzero(task.receivers)
    return bool((graph.hops()[np.ix_(at, at)] < FAR).all())
