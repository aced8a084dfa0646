"""Routes: explicit paths, or next-hop tables from which the paths follow.

Both forms have the same attributes; tables write out their paths only when asked for
``channels`` or ``priorities``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from common.errors import PlanError
from knotless_core import graph as core
from routing.graphs.channels import PRIORITIES, Channels, Ints, Priorities

MAX_PATH_BYTES = 4 << 30
"""Paths that need more memory than this are not written out."""
BYTES_PER_HOP = 5
"""Of a path written out: a channel and a priority."""


@dataclass(frozen=True)
class ExplicitRoutes:
    """One path for each source host and destination switch, and a broadcast tree a switch.

    Hosts with the same paths share a row. A path never depends on which host of its
    destination switch it goes to, so rules can be aggregated by switch.

    rows : (hosts,) the row of each source host.
    channels : (rows, switches, longest) the channels of the path to each switch, then -1.
    priorities : same shape, the priority (virtual channel) of each of those channels.
    tree_channels : (switches, switches) entry [u, v] is the channel by which a broadcast
        of a host on switch u enters switch v; -1 where it does not.
    tree_priorities : same shape, the priority of that channel.
    """

    rows: Ints
    channels: Ints
    priorities: Priorities
    tree_channels: Ints
    tree_priorities: Priorities

    def path(self, row: int, destination: int) -> list[tuple[int, int]]:
        """Return the (channel, priority) pairs from the hosts of ``row`` to a switch."""
        taken = self.channels[row, destination].tolist()
        priorities = self.priorities[row, destination].tolist()
        return [(c, p) for c, p in zip(taken, priorities, strict=True) if c >= 0]

    @property
    def vcs(self) -> int:
        """The number of virtual channels that unicasts and broadcasts use."""
        most = int(self.priorities[self.channels >= 0].max(initial=0))
        return 1 + max(most, int(self.tree_priorities.max(initial=0)))


@dataclass(frozen=True)
class TableRoutes:
    """Next-hop tables, as switches hold them; otherwise like :class:`ExplicitRoutes`.

    The rows of one table follow each other: they are ordered by it.

    rows : (hosts,) the row of each source host.
    fabric_channels : the channels that the tables' numbers mean.
    at : (rows,) the switch of each row's hosts.
    table : (rows,) the table that each row follows.
    next_hop : (tables, switches, destination switches) the channel that leaves the switch
        towards the destination; -1 where there is none and at the destination.
    first_priority : (tables, destination switches) the priority of frames on their first channel.
    changes : (changes, 4) where the priority changes: channel before, channel after, priority
        before, priority after. Just those that paths of the rows meet; elsewhere frames
        keep their priority.
    tree_channels, tree_priorities : (switches, switches) as in explicit routes.
    """

    rows: Ints
    fabric_channels: Channels
    at: Ints
    table: Ints
    next_hop: Ints
    first_priority: Priorities
    changes: Ints
    tree_channels: Ints
    tree_priorities: Priorities

    @cached_property
    def core(self) -> core.Tables:
        """The same for the kernels of the Rust core."""
        return core.Tables(
            self.fabric_channels.core,
            self.next_hop,
            self.at,
            self.table,
            self.first_priority,
            self.changes,
        )

    @property
    def channels(self) -> Ints:
        """(rows, switches, longest) the channels of each path, then -1; written out once.

        Raises
        ------
        PlanError
            The paths need more memory than :data:`MAX_PATH_BYTES`.

        """
        return self._paths[0]

    @property
    def priorities(self) -> Priorities:
        """Same shape, the priority of each of those channels; raises the same error."""
        return self._paths[1]

    @cached_property
    def _paths(self) -> tuple[Ints, Priorities]:
        longest = self.core.longest()
        sources, switches = len(self.at), len(self.fabric_channels.names)
        needed = sources * switches * longest * BYTES_PER_HOP
        if needed > MAX_PATH_BYTES:
            raise PlanError(
                f"the paths from {sources} sources to {switches} switches take"
                f" {needed / 1e9:.1f} GB when written out, at most {MAX_PATH_BYTES / 1e9:.1f} GB"
                " are allowed; this can be done on smaller fabrics only"
            )
        return self.core.paths(longest)

    def path(self, row: int, destination: int) -> list[tuple[int, int]]:
        """Return the (channel, priority) pairs from the hosts of ``row`` to a switch."""
        next_hop, head = self.next_hop[self.table[row], :, destination], self.fabric_channels.head
        taken = int(next_hop[self.at[row]])
        priority = int(self.first_priority[self.table[row], destination])
        hops = []
        while taken >= 0:
            hops.append((taken, priority))
            after = int(next_hop[head[taken]])
            priority = self._change_of.get((taken, after, priority), priority)
            taken = after
        return hops

    @cached_property
    def _change_of(self) -> dict[tuple[int, int, int], int]:
        """(channel before, channel after, priority before) -> the priority after."""
        return {(a, b, before): after for a, b, before, after in self.changes.tolist()}

    @property
    def vcs(self) -> int:
        """The number of virtual channels that unicasts and broadcasts use."""
        used = (self.first_priority, self.changes[:, 2:], self.tree_priorities)
        return 1 + max(int(priorities.max(initial=0)) for priorities in used)


Routes = ExplicitRoutes | TableRoutes


def no_changes() -> Ints:
    """Return ``changes`` of tables whose frames all keep their priority."""
    return np.empty((0, 4), dtype=np.int32)


def dependencies(channels: Channels, routes: ExplicitRoutes, receivers: Ints) -> tuple[Ints, Ints]:
    """Return the edges of unicasts to hosts and of broadcasts together, as (from, to) arrays.

    ``receivers`` are the hosts of each switch. An edge may come more than once.
    """
    paths = _nodes(routes.channels, routes.priorities)[:, receivers > 0]
    before, after = paths[:, :, :-1], paths[:, :, 1:]
    trees = _nodes(routes.tree_channels, routes.tree_priorities)
    source, target = np.nonzero(trees >= 0)
    below = trees[source, target]
    above = trees[source, channels.tail[below // PRIORITIES]]
    return (
        np.concatenate([before[after >= 0], above[above >= 0]]),
        np.concatenate([after[after >= 0], below[above >= 0]]),
    )


def _nodes(channel: Ints, priority: Priorities) -> Ints:
    nodes = np.where(channel >= 0, channel * PRIORITIES + priority, -1)
    return nodes.astype(np.int32, copy=False)
