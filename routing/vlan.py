"""In which VLAN each path lies.

Switch-tagged, all paths from one host lie in one VLAN: the PVID of its port. Host-tagged, the host
chooses the VLAN by the destination.

By default, paths may share a VLAN when they never want different next hops at one switch
towards one destination: that is all that switches need which forward by (VLAN, destination).
For ordinary Ethernet switches, which flood within a VLAN, see :mod:`routing.vlan_trees`.

References
----------
Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging, sections 2 and 3.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routing.channels import Channels, Ints
from routing.vlan_trees import assign_trees
from topologies.errors import PlanError

FIRST_VLAN = 2
"""VLAN 1 is the default VLAN of most switches: keep out of its way."""
LAST_VLAN = 4094
MOST_VLANS = LAST_VLAN - FIRST_VLAN + 1
TAGGINGS = ("switch", "host")
ASSIGNMENTS = ("default", "tree")


def assign_vlans(
    channels: Channels,
    paths: Ints,
    *,
    assignment: str = "default",
    tagging: str = "switch",
    limit: int = MOST_VLANS,
) -> Ints:
    """Return (rows, switches): the VLAN, from 2 on, of each path of ``paths``.

    ``paths`` (rows, switches, longest) are channels, then -1. With ``tagging`` by switches the
    VLAN depends on the row alone. Each row (with tagging by hosts, each path) takes the first VLAN
    into which it fits, in the order of the rows. Where there is no path, the
    entry is the VLAN that most paths of the row have: its broadcasts go there.

    Raises
    ------
    PlanError
        More than ``limit`` VLANs would be needed, or a row cannot be in one VLAN.

    """
    by_pair = tagging == "host"
    try:
        if assignment == "tree":
            numbers = assign_trees(channels, paths, by_pair, limit)
        else:
            numbers = _assign_next_hops(channels, paths, by_pair, limit)
    except OverflowError:
        most = ", all that 802.1Q has" if limit == MOST_VLANS else ""
        raise PlanError(
            f"this plan needs more than {limit} VLANs{most}; --select low-port may need fewer"
        ) from None
    for row in numbers:
        known = row[row >= 0]
        row[row < 0] = np.bincount(known).argmax() if len(known) else 0
    return FIRST_VLAN + numbers


def _assign_next_hops(channels: Channels, paths: Ints, by_pair: bool, limit: int) -> Ints:
    """Return (rows, switches) numbers from 0 on, -1 where there is no path; see the module."""
    switches = len(channels.names)
    tables: list[Ints] = []
    numbers = np.full(paths.shape[:2], -1, dtype=np.int32)
    for row in range(len(paths)):
        path: Ints = paths[row]
        destination, hop = np.nonzero(path >= 0)
        channel = path[destination, hop]
        cell = channels.tail[channel].astype(np.int64) * switches + destination
        number = 0
        while len(cell):
            if number == len(tables):
                if number == limit:
                    raise OverflowError
                tables.append(np.full(switches * switches, -1, dtype=np.int32))
            later = _clashing(tables[number][cell], channel, destination, switches, by_pair)
            tables[number][cell[~later]] = channel[~later]
            numbers[row, destination[~later]] = number
            cell, channel, destination = cell[later], channel[later], destination[later]
            number += 1
    return numbers


def _clashing(
    known: Ints, channel: Ints, destination: NDArray[np.intp], switches: int, by_pair: bool
) -> NDArray[np.bool_]:
    """Return which hops cannot be in a VLAN, because their path, or the whole row, clashes."""
    clash = (known >= 0) & (known != channel)
    if not by_pair:
        return np.full(len(clash), clash.any())
    of_path: NDArray[np.bool_] = np.bincount(destination[clash], minlength=switches) > 0
    return of_path[destination]
