"""Routes from a function that gives the path between two switches, for engines of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from knotless.base.errors import PlanError
from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.graphs.task import Task
from knotless.routing.routes import ExplicitRoutes

PathFunction = Callable[[int, int], Sequence[int]]
"""Returns the channels of the path from one switch to another, both given by their index."""


def path_by_steps(task: Task, next_switch: Callable[[int, int], int]) -> PathFunction:
    """Return the function that goes from switch to switch, each given by its index.

    Parameters
    ----------
    task : Task
        The input of the engine.
    next_switch : callable
        Returns the neighbour to which a packet goes, from the switch where it is and the one at
        which it ends.

    Returns
    -------
    callable
        Returns the channels of the path between two switches. It raises PlanError, with the
        switches passed, if a step leads to no neighbour or back to a switch of the path.

    Examples
    --------
    >>> from knotless.routing.graphs.channels import channels_of
    >>> from knotless.topologies import load
    >>> ring = load("ring,4")
    >>> task = Task(ring, channels_of(ring), vcs=None, select="low-port", root=None)
    >>> path_by_steps(task, lambda here, end: (here + 1) % 4)(0, 3)
    [0, 2, 4]

    """
    names = task.channels.names
    ends = zip(task.channels.tail.tolist(), task.channels.head.tolist(), strict=True)
    channel_to = {(near, far): channel for channel, (near, far) in enumerate(ends)}

    def path(start: int, end: int) -> list[int]:
        taken: list[int] = []
        passed = [start]
        while (here := passed[-1]) != end:
            further = next_switch(here, end)
            so_far = f"path from {names[start]} to {names[end]}: after"
            so_far += f" {' '.join(names[switch] for switch in passed)}"
            if (here, further) not in channel_to:
                near = ", ".join(f"{far} ({names[far]})" for a, far in channel_to if a == here)
                raise PlanError(f"{so_far} comes {further}, which is no neighbour: {near}")
            if further in passed:
                raise PlanError(f"{so_far} comes {names[further]} again: it goes in a circle")
            taken.append(channel_to[here, further])
            passed.append(further)
        return taken

    return path


def routes_of_paths(task: Task, path: PathFunction, trees: Ints | None = None) -> ExplicitRoutes:
    """Return the routes in which all packets between two switches take one path, on one VC.

    Parameters
    ----------
    task : Task
        The input of the engine.
    path : callable
        Returns the channels of the path from one switch to another, both given by their index.
    trees : array of int32, shape (switches, switches), optional
        The broadcast trees, as in :class:`knotless.routing.routes.ExplicitRoutes`. By default a
        broadcast follows the paths of its switch, which must then form a tree.

    Returns
    -------
    ExplicitRoutes
        The routes.

    Raises
    ------
    PlanError
        A path is not one: it has a gap, or another beginning or end. Or the paths of a switch
        form no tree and no ``trees`` are given.

    Examples
    --------
    Clockwise around a ring, where the channel to the next switch is the first of each switch:

    >>> from knotless.routing.graphs.channels import channels_of
    >>> from knotless.topologies import load
    >>> ring = load("ring,4")
    >>> task = Task(ring, channels_of(ring), vcs=None, select="low-port", root=None)
    >>> around = routes_of_paths(task, lambda u, v: [2 * (u + i) % 8 for i in range((v - u) % 4)])
    >>> around.path(0, 3)
    [(0, 0), (2, 0), (4, 0)]

    """
    channels, count = task.channels, len(task.channels.names)
    sources = sorted(set(task.host_switches.tolist()))
    paths = {
        (u, v): _checked(channels, u, v, path(u, v)) if u != v else []
        for u in sources
        for v in range(count)
    }
    longest = max(map(len, paths.values()), default=0)
    channels_of_pairs = np.full((len(sources), count, longest), -1, dtype=np.int32)
    for (u, v), of_pair in paths.items():
        channels_of_pairs[sources.index(u), v, : len(of_pair)] = of_pair
    if trees is None:
        trees = np.full((count, count), -1, dtype=np.int32)
        for u in sources:
            trees[u] = _tree(channels, u, (paths[u, v] for v in range(count)))
    return ExplicitRoutes(
        np.searchsorted(sources, task.host_switches).astype(np.int32),
        channels_of_pairs,
        np.zeros(channels_of_pairs.shape, dtype=np.uint8),
        trees,
        np.zeros(trees.shape, dtype=np.uint8),
    )


def _checked(channels: Channels, u: int, v: int, path: Sequence[int]) -> list[int]:
    """Return the path as whole numbers; raises PlanError unless it leads from ``u`` to ``v``."""
    names = channels.names
    switch, checked = u, []
    for channel in path:
        if not 0 <= channel < len(channels):
            raise PlanError(f"path from {names[u]} to {names[v]}: there is no channel {channel}")
        if channels.tail[channel] != switch:
            raise PlanError(
                f"path from {names[u]} to {names[v]}: channel {channels.name(channel, 0)}"
                f" does not begin at {names[switch]}, where the path is"
            )
        switch = int(channels.head[channel])
        checked.append(int(channel))
    if switch != v:
        raise PlanError(f"path from {names[u]} to {names[v]}: it ends at {names[switch]}")
    if len(checked) >= len(names):
        raise PlanError(f"path from {names[u]} to {names[v]}: it passes a switch twice")
    return checked


def _tree(channels: Channels, u: int, paths: Iterable[Sequence[int]]) -> Ints:
    """Return the channel on which each switch is entered; raises PlanError if there are two."""
    entered = np.full(len(channels.names), -1, dtype=np.int32)
    for channel in {channel for path in paths for channel in path}:
        switch = channels.head[channel]
        if entered[switch] >= 0 or switch == u:
            raise PlanError(
                f"the paths from {channels.names[u]} form no tree: they enter"
                f" {channels.names[switch]} on two channels; give the broadcast trees"
            )
        entered[switch] = channel
    return entered
