"""The channel dependency graph, and the search for a cycle in it.

A node is a virtual channel: ``channel * 16 + priority``. An edge means that some frame can hold the
first while it waits for the second. If there is no cycle, no deadlock is possible.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks, 1987.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from knotless._core.graph import is_acyclic, shortest_cycle
from knotless.base.flow_control import FlowControl, LinkFlowControl
from knotless.base.model_limits import PRIORITIES
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, Channels, Ints

Edges = NDArray[np.int64]
Number = TypeVar("Number", int, NDArray[np.int64])
Nodes = TypeVar("Nodes", Ints, NDArray[np.int64])


def virtual_channel(channel: Number, priority: Number) -> Number:
    """Return the node of the graph for ``channel`` and ``priority``, or for arrays of them."""
    return channel * VCS_PER_CHANNEL + priority


def find_cycle(edges: Iterable[tuple[int, int]] | NDArray[np.int64]) -> list[int]:
    """Return a shortest cycle, starting at its smallest node, or an empty list.

    Among several shortest cycles the one with the smallest nodes is returned, so that the result
    does not depend on the order of ``edges``.

    Parameters
    ----------
    edges : iterable of (int, int), or array of shape (edges, 2)
        The edges, from the first node to the second.

    Returns
    -------
    list of int
        The nodes of the cycle, each once.

    Examples
    --------
    >>> find_cycle([(16, 32), (32, 0), (32, 48), (0, 16)])
    [0, 16, 32]

    """
    listed = edges if isinstance(edges, np.ndarray) else list(edges)
    ends = np.array(listed, dtype=np.int32).reshape(-1, 2)
    return cycle_among(np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1]))


def cycle_among(before: Ints, after: Ints) -> list[int]:
    """Return the same for edges given as (from, to) arrays; duplicates are allowed."""
    nodes = 1 + max(int(before.max(initial=0)), int(after.max(initial=0)))
    if is_acyclic(nodes, before, after):
        return []
    return shortest_cycle(before.astype(np.int64), after.astype(np.int64))


def cycle_names(channels: Channels, cycle: Sequence[int]) -> list[str]:
    """Return a cycle in the form ``SWITCH:PORT/PRIORITY``."""
    return [channels.name(*divmod(node, VCS_PER_CHANNEL)) for node in cycle]


def waiting(edges: Edges, flow_control: FlowControl) -> Edges:
    """Return the dependencies between virtual channels that exist under a flow control.

    ``edges`` (dependencies, 2) are the dependencies under PFC. Only links between switches can
    form a cycle; if these do not pause, there are no dependencies. Priorities that are paused
    together form one node, see :func:`merged`.
    """
    links = flow_control.switch_links
    return merged(edges, links) if links.pauses else edges[:0]


def merged(nodes: Nodes, links: LinkFlowControl) -> Nodes:
    """Return the node of each virtual channel on links that pause, in an array of the same shape.

    The priorities of a class form one node: that of the priority with the number of the class.
    """
    if links.classes == tuple(range(len(links.classes))):
        return nodes
    classes = [links.classes[vc % len(links.classes)] for vc in range(VCS_PER_CHANNEL)]
    above = np.array([vc - number for vc, number in enumerate(classes)], dtype=nodes.dtype)
    return nodes - above[nodes % VCS_PER_CHANNEL]


def lossless_waits(
    pausing: NDArray[np.bool_], dependencies: Edges
) -> tuple[NDArray[np.int64], Edges]:
    """Return the dependencies under PFC, given which priority groups pause.

    Parameters
    ----------
    pausing : array of bool, shape (channels, 8, 16)
        The priorities of each channel that a PFC frame for a priority group stops.
    dependencies : array of shape (dependencies, 4 or more)
        The channel and virtual channel held, and those requested. A virtual channel is the queue
        of a packet times 8 plus its priority group.

    Returns
    -------
    rows, waits : arrays of shape (waits,) and (waits, 4)
        The dependency of each wait; the channel and group held, and those requested.

    """
    holds, holds_vc = dependencies[:, :2].T
    group = holds_vc % PRIORITIES
    lossless = np.any(pausing[holds, group], axis=1)
    rows, requests, requests_group = requested(pausing, dependencies)
    rows, requests, requests_group = (
        column[lossless[rows]] for column in (rows, requests, requests_group)
    )
    return rows, np.stack([holds[rows], group[rows], requests, requests_group], axis=1)


def requested(
    pausing: NDArray[np.bool_], dependencies: Edges
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of dependencies that wait, and the channel and priority group of each."""
    requests, vc = dependencies[:, 2:4].T
    rows, groups = np.nonzero(pausing[requests, :, vc // PRIORITIES])
    return rows, requests[rows], groups
