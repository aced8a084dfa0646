"""What a plan's rules come to, as the simulator's arrays.

Made from the plan and not from its rules: those of a few thousand switches would be tens of
millions of Python objects. The tests compare the two, frame by frame, on small fabrics.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from routing.plan import Plan, distinct_rows
from routing.vlan import assign_vlans
from simulation.channels import ChannelTable

NOWHERE = 0xFFFF


@dataclass(frozen=True)
class Forwarding:
    """Which way frames go; the arrays are described in ``knotless_core/simulator.pyi``."""

    rows: NDArray[np.uint32]
    next: NDArray[np.uint16]
    host_vlan: NDArray[np.uint16]
    host_row: NDArray[np.uint32]
    first_priority: NDArray[np.uint8]
    changes: NDArray[np.uint32]
    trees: list[NDArray[np.uint32]] = field(default_factory=list)


def forwarding(plan: Plan, table: ChannelTable) -> Forwarding:
    """Return the tables of ``plan`` over the channels of ``table``."""
    channels, routes = plan.channels, plan.routes
    place = table.place
    switches = len(channels.names)
    out = zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True)
    numbers = np.array(
        [place[f"{channels.names[tail]}:{port}"] for tail, port in out], dtype=np.uint32
    )
    # Of each switch, where its channels begin; of each of the plan's channels, which of them it is.
    first = np.searchsorted(np.where(table.leaves < 0, switches, table.leaves), np.arange(switches))
    local = (numbers - first[channels.tail]).astype(np.uint16)
    # Hosts that tag take the same paths; VLANs by source are enough to tell them apart here.
    by_row = (
        plan.vlans if plan.tagging == "switch" else assign_vlans(channels, routes.channels)[:, 0]
    )
    vlans, vlan_of_row = np.unique(by_row, return_inverse=True)
    rows, following = _next(plan, local, vlan_of_row.astype(np.int64), len(vlans))
    return Forwarding(
        rows=rows,
        next=following,
        host_vlan=vlan_of_row[routes.rows].astype(np.uint16),
        host_row=routes.rows.astype(np.uint32),
        first_priority=_first_priorities(plan, switches),
        changes=_changes(plan, numbers),
    )


def _next(
    plan: Plan, local: NDArray[np.uint16], vlan_of_row: NDArray[np.int64], vlans: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    """Return (rows, next). Equal rows are kept once: many VLANs agree at most switches.

    Where no path of a VLAN comes by, any next hop would do, and that of the first row of
    paths that has one is taken: so the compiled rules have one rule for all VLANs there.
    """
    paths, tail = plan.routes.channels, plan.channels.tail
    switches = len(plan.channels.names)
    destination = np.broadcast_to(np.arange(switches)[:, None], paths.shape[1:])
    usual = np.full((switches, switches), NOWHERE, dtype=np.uint16)
    for row in range(len(paths) - 1, -1, -1):
        taken = paths[row] >= 0
        used = paths[row][taken]
        usual[tail[used], destination[taken]] = local[used]
    rows = np.empty((switches, vlans), dtype=np.uint32)
    known: dict[bytes, int] = {}
    kept: list[NDArray[np.uint16]] = []
    order = np.argsort(vlan_of_row, kind="stable")
    bounds = np.searchsorted(vlan_of_row[order], np.arange(vlans + 1))
    for vlan in range(vlans):
        mine = usual.copy()
        for row in order[bounds[vlan] : bounds[vlan + 1]].tolist():
            taken = paths[row] >= 0
            used = paths[row][taken]
            mine[tail[used], destination[taken]] = local[used]
        for switch in range(switches):
            key = mine[switch].tobytes()
            number = known.get(key)
            if number is None:
                number = known[key] = len(kept)
                kept.append(mine[switch].copy())
            rows[switch, vlan] = number
    return rows, np.stack(kept)


def _first_priorities(plan: Plan, switches: int) -> NDArray[np.uint8]:
    """Return (rows, switches): the priority of the first hop to each destination switch."""
    routes = plan.routes
    if routes.channels.shape[2] == 0:
        return np.zeros((len(plan.vlans), switches), dtype=np.uint8)
    taken = routes.channels[:, :, 0] >= 0
    return np.where(taken, routes.priorities[:, :, 0], 0).astype(np.uint8)


def _changes(plan: Plan, numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the changes of priority: (channel in, channel out, priority, new priority)."""
    paths, priorities = plan.routes.channels, plan.routes.priorities
    changed = (paths[:, :, 1:] >= 0) & (priorities[:, :, 1:] != priorities[:, :, :-1])
    found = distinct_rows(
        numbers[paths[:, :, :-1][changed]].astype(np.int64),
        numbers[paths[:, :, 1:][changed]].astype(np.int64),
        priorities[:, :, :-1][changed],
        priorities[:, :, 1:][changed],
    )
    return np.array(found, dtype=np.uint32).reshape(-1, 4)
