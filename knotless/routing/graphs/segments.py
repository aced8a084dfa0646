"""Paths that are put together of segments, as those through an intermediate group or switch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless.routing import path_memory
from knotless.routing.graphs.balance import Rows
from knotless.routing.graphs.channels import Channels, Ints, Priorities
from knotless.routing.graphs.state_graph import Mask

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Choices:
    """Values grouped by a key, of which one is chosen by any number.

    ``values`` are sorted by key; ``first`` and ``count``, shape (keys,), say where each key is.
    """

    values: Ints
    first: Numbers
    count: Numbers

    @classmethod
    def grouped(cls, values: Ints, keys: Ints | Numbers, size: int) -> Choices:
        """Group ``values`` by ``keys``, each below ``size``; values of a key keep their order."""
        count = np.bincount(keys, minlength=size)
        order = np.argsort(keys, kind="stable")
        return cls(values[order].astype(np.int32), np.cumsum(count) - count, count)

    def pick(self, key: Ints | Numbers, number: Numbers) -> Ints:
        """Return value ``number`` (modulo their count) of each key, -1 if it has none.

        Examples
        --------
        >>> choices = Choices.grouped(np.array([7, 8, 9]), np.array([0, 2, 2]), 3)
        >>> choices.pick(np.array([0, 1, 2]), np.array([5, 5, 5])).tolist()
        [7, -1, 9]

        """
        count = self.count[key]
        place = self.first[key] + number % np.maximum(count, 1)
        padded = np.append(self.values, np.int32(-1))
        return np.where(count > 0, padded[np.minimum(place, len(self.values))], np.int32(-1))


def between_switches(channels: Channels, used: Mask | None = None) -> Choices:
    """Return the channels (of ``used``) by tail x n + head, with n switches."""
    count = len(channels.names)
    chosen = np.arange(len(channels)) if used is None else np.flatnonzero(used)
    keys = channels.tail[chosen].astype(np.int64) * count + channels.head[chosen]
    return Choices.grouped(chosen.astype(np.int32), keys, count * count)


class SegmentedPaths:
    """The paths of all rows to all switches while they grow, hop by hop.

    Attributes
    ----------
    tail : array of int32, shape (channels + 1,)
        The switch that each channel leaves; -1 for channel -1.
    here : array of int32, shape (rows, switches)
        The switch that each path has reached.
    target : array of int32, shape (rows, switches)
        Its destination.
    turn : array of int64, shape (rows, switches)
        A number by which ties of a path are broken: row + destination.
    length : array of int32, shape (rows, switches)
        The number of its hops so far.
    lost : array of bool, shape (rows, switches)
        Whether a channel was missing.

    """

    def __init__(self, channels: Channels, rows: Rows, longest: int) -> None:
        """Begin at the switch of each row; raises PlanError if the paths need too much memory."""
        count, sources = len(channels.names), len(rows.switch)
        hops = sources * count * longest
        if hops > path_memory.max_hops(hops):
            raise path_memory.too_long(sources, count, longest)
        self.head = channels.head
        self.tail: Ints = np.append(channels.tail, np.int32(-1))
        shape = sources, count
        self.here: Ints = np.broadcast_to(rows.switch[:, None], shape).astype(np.int32)
        self.target: Ints = np.broadcast_to(np.arange(count, dtype=np.int32), shape)
        self.turn: Numbers = np.arange(sources, dtype=np.int64)[:, None] + self.target
        self.lost: Mask = np.zeros(shape, dtype=bool)
        self._channels: Ints = np.full((*shape, longest), -1, dtype=np.int32)
        self._priorities: Priorities = np.zeros((*shape, longest), dtype=np.uint8)
        self.length: Ints = np.zeros(shape, dtype=np.int32)

    def take(self, channel: Ints, moving: Mask, priority: int | Ints) -> None:
        """Append a channel to the ``moving`` paths; those without one (-1) are lost."""
        self.lost |= moving & (channel < 0)
        row, target = np.nonzero(moving & ~self.lost)
        place, taken = self.length[row, target], channel[row, target]
        self._channels[row, target, place] = taken
        self._priorities[row, target, place] = (
            priority if isinstance(priority, int) else priority[row, target]
        )
        self.length[row, target] += 1
        self.here[row, target] = self.head[taken]

    def finished(self) -> tuple[Ints, Priorities]:
        """Return channels and priorities, without columns that no path uses."""
        longest = int(self.length.max(initial=0))
        return (
            np.ascontiguousarray(self._channels[:, :, :longest]),
            np.ascontiguousarray(self._priorities[:, :, :longest]),
        )


class GlobalLinks:
    """The links between groups of switches, for paths over a third group.

    Attributes
    ----------
    group : array of int32, shape (switches,)
        The group of each switch.

    """

    def __init__(self, channels: Channels, group: Ints) -> None:
        """Collect the channels whose ends are in different groups."""
        self.group, self._groups = group, int(group.max()) + 1
        near, far = group[channels.tail], group[channels.head]
        across = np.flatnonzero(near != far).astype(np.int32)
        tail, to = channels.tail[across], far[across]
        self._own = Choices.grouped(across, tail * self._groups + to, len(group) * self._groups)
        self._shared = Choices.grouped(across, near[across] * self._groups + to, self._groups**2)

    def own(self, paths: SegmentedPaths, goal: Ints) -> Ints:
        """Return the channel of the switch where each path is to a group, -1 if it has none."""
        return self._own.pick(paths.here.astype(np.int64) * self._groups + goal, paths.turn)

    def of_group(self, paths: SegmentedPaths, goal: Ints) -> Ints:
        """Return the same, or if there is none a channel of any switch of the group."""
        own, group = self.own(paths, goal), self.group[paths.here].astype(np.int64)
        return np.where(own >= 0, own, self._shared.pick(group * self._groups + goal, paths.turn))

    def third_groups(self, paths: SegmentedPaths, layer: int) -> Ints:
        """Return for each path a group with links to those of both ends, the last if none has.

        The (turn + layer modulo their number)-th in ascending order; within a group, that group.
        """
        joined = (self._shared.count > 0).reshape(self._groups, self._groups)
        a, third, b = np.nonzero(joined[:, :, None] & joined[None, :, :])
        apart = (a != b) & (third != a) & (third != b)
        keys = (a * self._groups + b)[apart]
        choices = Choices.grouped(third[apart].astype(np.int32), keys, self._groups**2)
        near, far = self.group[paths.here].astype(np.int64), self.group[paths.target]
        chosen = choices.pick(near * self._groups + far, paths.turn + layer)
        return np.where(chosen >= 0, chosen, far).astype(np.int32)
