"""A dual-plane fabric: hosts with an interface on each of two equal networks."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from simulation.channels import ChannelTable
from simulation.tables import Forwarding


def dual_plane(table: ChannelTable, tables: Forwarding) -> tuple[ChannelTable, Forwarding]:
    """Return channels and tables of two fabrics that no link joins.

    Switches and hosts of the second follow those of the first. Multicast trees stay on the
    first. Names of channels are those of the first, then with a ``'`` those of the second.
    """
    of_switches = int((table.leaves >= 0).sum())
    of_hosts = len(table.leaves) - of_switches
    switches, hosts = tables.rows.shape[0], of_hosts
    number = np.arange(len(table.leaves))
    first = np.where(number < of_switches, number, number + of_switches)
    second = np.where(number < of_switches, number + of_switches, number + of_switches + of_hosts)
    order = np.argsort(np.concatenate([first, second]))

    def moved(ends: np.typing.NDArray[np.int64]) -> np.typing.NDArray[np.int64]:
        return np.where(ends >= 0, ends + switches, ends - hosts)

    joined = {
        column.name: np.concatenate([getattr(table, column.name)] * 2)[order]
        for column in fields(ChannelTable)
        if column.name not in ("names", "leaves", "enters", "back", "hubs")
    }
    names = [*table.names, *(f"{name}'" for name in table.names)]
    both = ChannelTable(
        names=tuple(names[place] for place in order.tolist()),
        leaves=np.concatenate([table.leaves, moved(table.leaves)])[order],
        enters=np.concatenate([table.enters, moved(table.enters)])[order],
        hubs=table.hubs,
        back=np.concatenate([first[table.back], second[table.back]])[order].astype(np.uint32),
        **joined,
    )
    changes = []
    for place in (first, second):
        mine = tables.changes.copy()
        mine[:, :2] = place[tables.changes[:, :2]]
        changes.append(mine)
    trees = []
    for tree in tables.trees:
        mine = tree.copy()
        mine[:, 1] = first[tree[:, 1]]
        trees.append(mine)
    return both, replace(
        tables,
        rows=np.concatenate([tables.rows] * 2),
        next=np.hstack([tables.next] * 2),
        host_vlan=np.concatenate([tables.host_vlan] * 2),
        host_row=np.concatenate([tables.host_row] * 2),
        first_priority=np.hstack([tables.first_priority] * 2),
        changes=np.concatenate(changes),
        trees=trees,
    )
