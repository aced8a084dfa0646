"""Which VLAN each source sends in (switch-tagged: the PVID of its port).

References
----------
Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging. There every VLAN is a
tree; switches that forward by (VLAN, destination) need less: two sources may share a VLAN when
they never want different next hops at one switch towards one destination.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routing.channels import Channels, Ints
from topologies.errors import PlanError

FIRST_VLAN = 2
"""VLAN 1 is the default VLAN of most switches: keep out of its way."""
LAST_VLAN = 4094
TAGGINGS = ("switch", "host")


def assign_vlans(channels: Channels, paths: Ints) -> Ints:
    """Return the VLAN of each row of ``paths`` (rows, switches, longest), from 2 on.

    Each row takes the first VLAN with which all its next hops agree, in the order of the rows.

    Raises
    ------
    PlanError
        More VLANs would be needed than 802.1Q has.

    """
    switches = len(channels.names)
    tables: list[Ints] = []
    vlans = np.zeros(paths.shape[0], dtype=np.int32)
    for row in range(len(paths)):
        path = paths[row]
        destination, hop = np.nonzero(path >= 0)
        channel = path[destination, hop]
        cell = channels.tail[channel].astype(np.int64) * switches + destination
        number = _first_that_agrees(tables, cell, channel)
        if number == len(tables):
            if number > LAST_VLAN - FIRST_VLAN:
                raise PlanError(
                    f"this plan needs more than {LAST_VLAN - FIRST_VLAN + 1} VLANs, all that 802.1Q"
                    " has; --select low-port may need fewer"
                )
            tables.append(np.full(switches * switches, -1, dtype=np.int32))
        tables[number][cell] = channel
        vlans[row] = FIRST_VLAN + number
    return vlans


def _first_that_agrees(tables: list[Ints], cell: NDArray[np.int64], channel: Ints) -> int:
    """Return the first table that wants no other channel in any of the cells, or their number."""
    for number, table in enumerate(tables):
        known = table[cell]
        if ((known < 0) | (known == channel)).all():
            return number
    return len(tables)
