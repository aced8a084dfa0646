"""Routes: explicit paths, or next-hop tables that imply them.

Both classes have the same attributes. Tables compute explicit paths only when ``channels`` or
``priorities`` is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from knotless._core import graph as core
from knotless.routing import path_memory
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, Channels, Ints, Priorities


@dataclass(frozen=True)
class ExplicitRoutes:
    """One path per source host and destination switch, and one broadcast tree per switch.

    Hosts with the same paths share a row. A path depends on the destination's switch, not on the
    destination host, so that rules can be aggregated by switch.

    Attributes
    ----------
    rows : array of int32, shape (hosts,)
        The row of each source host.
    channels : array of int32, shape (rows, switches, longest)
        The channels of the path to each switch, then -1.
    priorities : array of uint8, same shape
        The priority (virtual channel) of each of those channels.
    tree_channels : array of int32, shape (switches, switches)
        Entry [u, v] is the channel on which a broadcast from a host on switch u enters switch v, or
        -1 if it does not.
    tree_priorities : array of uint8, same shape
        The priority of that channel.

    """

    rows: Ints
    channels: Ints
    priorities: Priorities
    tree_channels: Ints
    tree_priorities: Priorities

    def path(self, row: int, destination: int) -> list[tuple[int, int]]:
        """Return the (channel, priority) pairs from the hosts of ``row`` to a switch."""
        channels = self.channels[row, destination].tolist()
        priorities = self.priorities[row, destination].tolist()
        return [(c, p) for c, p in zip(channels, priorities, strict=True) if c >= 0]

    def written_out(self) -> ExplicitRoutes:
        """Return the same: the paths are written out."""
        return self

    @property
    def first_priorities(self) -> Priorities:
        """The priority of frames on their first channel, shape (rows, switches)."""
        if not self.channels.shape[2]:
            return np.zeros(self.channels.shape[:2], dtype=np.uint8)
        return self.priorities[:, :, 0]

    @property
    def vcs(self) -> int:
        """The number of virtual channels that unicasts and broadcasts use."""
        highest = int(self.priorities[self.channels >= 0].max(initial=0))
        return 1 + max(highest, int(self.tree_priorities.max(initial=0)))


@dataclass(frozen=True)
class TableRoutes:
    """Next-hop tables, as switches hold them, with the interface of :class:`ExplicitRoutes`.

    Rows are sorted by table.

    Attributes
    ----------
    rows : array of int32, shape (hosts,)
        The row of each source host.
    fabric_channels : Channels
        The channels whose numbers the tables contain.
    at : array of int32, shape (rows,)
        The switch of each row's hosts.
    table : array of int32, shape (rows,)
        The table that each row uses.
    next_hop : NextHops, shape (tables, switches, columns)
        The output channel of the switch towards the destination; -1 if there is none and at the
        destination.
    first_priority : array of uint8, shape (tables, destination switches)
        The priority of frames on their first channel.
    changes : array of int32, shape (changes, 4)
        Each change of priority: channel before, channel after, priority before, priority after.
        Only changes on paths of the rows are listed; otherwise frames keep their priority.
    tree_channels, tree_priorities : arrays, shape (switches, switches)
        As in explicit routes.
    columns : array of int32, shape (switches,), or None
        The column of each destination switch in ``next_hop``, -1 if it has none: then nothing is
        sent there. None: each switch has its own.

    """

    rows: Ints
    fabric_channels: Channels
    switch: Ints
    table: Ints
    next_hop: core.NextHops
    first_priority: Priorities
    changes: Ints
    tree_channels: Ints
    tree_priorities: Priorities
    columns: Ints | None = None

    def expanded(self) -> TableRoutes:
        """Return the same with a column for each switch."""
        if self.columns is None:
            return self
        taken = np.take(self.next_hop.array(), self.columns, axis=2)
        next_hop = np.ascontiguousarray(np.where(self.columns >= 0, taken, np.int32(-1)))
        return replace(self, next_hop=core.NextHops(next_hop), columns=None)

    def written_out(self) -> ExplicitRoutes:
        """Return the same paths, written out; PlanError if they need more memory than is free."""
        trees = self.tree_channels, self.tree_priorities
        return ExplicitRoutes(self.rows, self.channels, self.priorities, *trees)

    @property
    def first_priorities(self) -> Priorities:
        """The priority of frames on their first channel, shape (rows, switches)."""
        return self.first_priority[self.table]

    @cached_property
    def core(self) -> core.Tables:
        """The tables in the form of the Rust core."""
        return core.Tables(
            self.fabric_channels.core,
            self.next_hop,
            self.switch,
            self.table,
            self.first_priority,
            self.changes,
            self.columns,
        )

    @property
    def channels(self) -> Ints:
        """(rows, switches, longest) the channels of each path, then -1; computed once.

        Raises
        ------
        PlanError
            The paths need more memory than is free.

        """
        return self._paths[0]

    @property
    def priorities(self) -> Priorities:
        """The priority of each of those channels, same shape; raises the same error."""
        return self._paths[1]

    @cached_property
    def _paths(self) -> tuple[Ints, Priorities]:
        longest = self.core.longest()
        sources, switches = len(self.switch), len(self.fabric_channels.names)
        hops = sources * switches * longest
        if hops > path_memory.max_hops(hops):
            raise path_memory.too_long(sources, switches, longest)
        return self.core.paths(longest)

    def path(self, row: int, destination: int) -> list[tuple[int, int]]:
        """Return the (channel, priority) pairs from the hosts of ``row`` to a switch."""
        column = destination if self.columns is None else int(self.columns[destination])
        if column < 0:
            return []
        table, head = int(self.table[row]), self.fabric_channels.head
        channel = self.next_hop.get(table, int(self.switch[row]), column)
        priority = int(self.first_priority[table, destination])
        hops = []
        while channel >= 0:
            hops.append((channel, priority))
            next_channel = self.next_hop.get(table, int(head[channel]), column)
            priority = self._change_of.get((channel, next_channel, priority), priority)
            channel = next_channel
        return hops

    @cached_property
    def _change_of(self) -> dict[tuple[int, int, int], int]:
        """Map (channel before, channel after, priority before) to the priority after."""
        return {(a, b, before): after for a, b, before, after in self.changes.tolist()}

    @property
    def vcs(self) -> int:
        """The number of virtual channels that unicasts and broadcasts use."""
        used = (self.first_priority, self.changes[:, 2:], self.tree_priorities)
        return 1 + max(int(priorities.max(initial=0)) for priorities in used)


Routes = ExplicitRoutes | TableRoutes


def no_changes() -> Ints:
    """Return the ``changes`` of tables in which all frames keep their priority."""
    return np.empty((0, 4), dtype=np.int32)


def dependencies(channels: Channels, routes: Routes, receivers: Ints) -> tuple[Ints, Ints]:
    """Return the dependencies of unicasts to hosts and of broadcasts, as (from, to) arrays.

    ``receivers`` is the number of hosts of each switch. An edge may occur more than once.
    """
    paths = _nodes(routes.channels, routes.priorities)[:, receivers > 0]
    before, after = paths[:, :, :-1], paths[:, :, 1:]
    trees = _nodes(routes.tree_channels, routes.tree_priorities)
    source, target = np.nonzero(trees >= 0)
    below = trees[source, target]
    above = trees[source, channels.tail[below // VCS_PER_CHANNEL]]
    return (
        np.concatenate([before[after >= 0], above[above >= 0]]),
        np.concatenate([after[after >= 0], below[above >= 0]]),
    )


def _nodes(channel: Ints, priority: Priorities) -> Ints:
    nodes = np.where(channel >= 0, channel * VCS_PER_CHANNEL + priority, -1)
    return nodes.astype(np.int32, copy=False)


def common_routes(old: Routes, new: Routes) -> Routes | None:
    """Return ``old`` without the hops in which ``new`` differs, or None if they have other forms.

    A path ends before its first hop that differs; a broadcast tree does not enter a switch that
    ``new`` enters on another channel or with another priority.
    """
    if old.rows.shape != new.rows.shape or (old.rows != new.rows).any():
        return None
    same = (old.tree_channels == new.tree_channels) & (old.tree_priorities == new.tree_priorities)
    trees = np.where(same, old.tree_channels, -1).astype(old.tree_channels.dtype)
    if isinstance(old, TableRoutes) and isinstance(new, TableRoutes):
        old, new = old.expanded(), new.expanded()
        if old.next_hop.shape != new.next_hop.shape:
            return None
        hops = old.next_hop.array()
        hops[hops != new.next_hop.array()] = -1
        return replace(
            old,
            next_hop=core.NextHops(hops),
            changes=np.concatenate([old.changes, new.changes]),  # the last one counts
            tree_channels=trees,
        )
    if isinstance(old, ExplicitRoutes) and isinstance(new, ExplicitRoutes):
        longest = min(old.channels.shape[2], new.channels.shape[2])
        channels, priorities = old.channels[..., :longest], old.priorities[..., :longest]
        same = channels == new.channels[..., :longest]
        same &= priorities == new.priorities[..., :longest]
        same = np.logical_and.accumulate(same, axis=2)
        return replace(
            old,
            channels=np.where(same, channels, -1).astype(channels.dtype),
            priorities=np.where(same, priorities, 0).astype(priorities.dtype),
            tree_channels=trees,
        )
    return None
