"""Backups: the channels on which switches send packets if their output port is down.

A backup has a label of its own. Its packets follow the next hops of this label to their
destination, and are never diverted a second time. Several backups share a label where they agree
on the next hop of each switch to each destination. Backups for a link avoid the switch at its end
as well, unless that is the destination: the switch that sees its port down cannot know which of
the two has failed.

References
----------
Kvalbein et al., Fast IP network recovery using multiple routing configurations, 2006, where labels
stand for routes that avoid a failed part. RFC 5286 has backups without labels.

"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

FIRST_LABEL = 512
"""The first VLAN of backups; those of plans that have backups are below it."""
MAX_LABELS = 255
"""VLANs of backups, so that all of them match one mask."""


class Backup(NamedTuple):
    """The channel on which packets are diverted, and the number of their label, from 0."""

    channel: int
    label: int


@dataclass(frozen=True)
class Backups:
    """The backups of a plan.

    ``chosen`` has the backup of each (channel, destination switch) that has one. ``none`` are those
    that packets use and that have none. ``next_hop`` is the channel that packets of each (label,
    switch, destination switch) take. ``returning`` are the (channel, destination switch, label)
    whose packets may arrive on the link on which they are diverted: they go back. ``priority`` is
    that of all diverted packets.
    """

    priority: int
    chosen: Mapping[tuple[int, int], Backup] = field(default_factory=dict)
    none: frozenset[tuple[int, int]] = frozenset()
    next_hop: Mapping[tuple[int, int, int], int] = field(default_factory=dict)
    returning: frozenset[tuple[int, int]] = frozenset()

    @property
    def labels(self) -> int:
        """The number of labels."""
        return 1 + max((label for label, _, _ in self.next_hop), default=-1)
