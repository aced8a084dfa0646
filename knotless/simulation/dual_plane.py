"""A dual-plane fabric: hosts with an interface on each of two equal networks."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from knotless.simulation.channels import ChannelTable

_SETTINGS = (
    *("flow_control", "hubs", "watchdog_action", "line_errors", "retry"),
    *("broadcast_share", "broadcast_burst_bytes", "pause_limit"),
)
"""What is no column."""
_OWN = ("names", "leaves", "enters", "back", "switches", "switch_settings", *_SETTINGS)
"""What is not a column, or a column of numbers that differ between the planes."""


def dual_plane(table: ChannelTable, switches: int) -> ChannelTable:
    """Return the channels of two equal, unconnected fabrics of ``switches`` switches each.

    Switches and hosts of the second plane are numbered after those of the first; names of its
    channels end in ``'``.
    """
    of_switches = int((table.leaves >= 0).sum())
    hosts = len(table.leaves) - of_switches
    number = np.arange(len(table.leaves))
    first = np.where(number < of_switches, number, number + of_switches)
    second = np.where(number < of_switches, number + of_switches, number + of_switches + hosts)
    order = np.argsort(np.concatenate([first, second]))

    def moved(ends: np.typing.NDArray[np.int64]) -> np.typing.NDArray[np.int64]:
        return np.where(ends >= 0, ends + switches, ends - hosts)

    both_planes = {
        column.name: np.concatenate([getattr(table, column.name)] * 2)[order]
        for column in fields(ChannelTable)
        if column.name not in _OWN
    }
    names = [*table.names, *(f"{name}'" for name in table.names)]
    return ChannelTable(
        names=tuple(names[place] for place in order.tolist()),
        leaves=np.concatenate([table.leaves, moved(table.leaves)])[order],
        enters=np.concatenate([table.enters, moved(table.enters)])[order],
        back=np.concatenate([first[table.back], second[table.back]])[order].astype(np.uint32),
        **{name: getattr(table, name) for name in _SETTINGS},
        **both_planes,
    )
