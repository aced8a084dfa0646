"""The forwarding state of a plan, from which its rules are compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from knotless._core import forwarding as core
from knotless.base.errors import PlanError
from knotless.forwarding.state import ForwardingState, channel_ends_of, members_of
from knotless.routing.graphs.channels import Ints
from knotless.routing.plan import Plan
from knotless.routing.routes import Routes, TableRoutes


def state_of_plan(plan: Plan, also_for: Sequence[ForwardingState] = ()) -> ForwardingState:
    """Return the forwarding state of ``plan``.

    It holds its packets, and those of the states ``also_for``, of plans of the same fabric: what
    it says of these is in the rules that are compiled from it.

    Raises
    ------
    PlanError
        Switches forward by (VLAN, destination) and change priorities by (input port, output
        port, priority), which cannot express the plan.

    """
    fabric, channels, routes = plan.fabric, plan.channels, plan.routes
    ends = channel_ends_of(fabric, channels)
    choices = _of_sets(plan) or _of_source_choices(plan) or _of_layers(plan)
    arrays = {
        "row": routes.rows.astype(np.uint32),
        "flood_vlan": plan.vlans.astype(np.uint16),
        "tree": np.ascontiguousarray(routes.tree_channels),
        "tree_priority": np.ascontiguousarray(routes.tree_priorities),
        **(choices or _of_tables(plan, routes) or _of_paths(plan)),
    }
    try:
        state = core.of_plan(
            len(fabric.switches),
            ends.leaves,
            ends.enters,
            ends.hosts,
            members_of(fabric, plan.multicast),
            plan.tagging == "host",
            arrays,
            [state.core for state in also_for],
        )
    except LookupError as conflict:
        raise PlanError(_conflict(plan, *conflict.args)) from None
    return ForwardingState(fabric, channels, plan.multicast, state, failures=plan.failures)


def _of_sets(plan: Plan) -> dict[str, object] | None:
    """Return the sets of next hops, and the priority of each host; None without multipath."""
    if plan.next_hops is None:
        return None
    routes = plan.routes
    priorities, stays = plan.next_hops.priorities, plan.next_hops.stays
    if isinstance(routes, TableRoutes):
        first = routes.first_priority[routes.table]
    elif routes.channels.shape[2]:
        first = routes.priorities[:, :, 0]
    else:
        first = np.zeros(routes.channels.shape[:2], dtype=np.uint8)
    return {
        "vlan": plan.vlans.astype(np.uint16),
        "set_ends": plan.next_hops.ends,
        "set_channels": plan.next_hops.channels,
        **({} if priorities is None else {"set_vcs": priorities, "set_stays": stays}),
        "first_priority": np.ascontiguousarray(first),
    }


def _of_source_choices(plan: Plan) -> dict[str, object] | None:
    """Return the paths of which first switches choose; None if they do not."""
    if (choices := plan.source_choices) is None:
        return None
    tables = choices.tables
    return {
        "vlan": plan.vlans.astype(np.uint16),
        "direct": np.ascontiguousarray(tables.direct),
        "towards": np.ascontiguousarray(tables.towards),
        "intermediate": tables.intermediate.astype(np.uint32),
        "kind": tables.kind,
        "rises": tables.rises,
        "choice_ends": choices.ends,
        "over": choices.over,
    }


def _of_layers(plan: Plan) -> dict[str, object] | None:
    """Return the paths of all layers; None if there are none."""
    if (layers := plan.layers) is None:
        return None
    count, rows, switches, longest = layers.channels.shape
    shape = (count * rows, switches, longest)
    return {
        "vlan": layers.vlans.reshape(-1).astype(np.uint16),
        "flood_vlan": np.tile(plan.vlans, count).astype(np.uint16),
        "channels": np.ascontiguousarray(layers.channels.reshape(shape)),
        "priorities": np.ascontiguousarray(layers.priorities.reshape(shape)),
        "longest": longest,
        "layers": count,
    }


def _of_tables(plan: Plan, routes: Routes) -> dict[str, object] | None:
    """Return the next-hop tables by VLAN; None if VLANs do not correspond to tables."""
    if not isinstance(routes, TableRoutes) or plan.tagging == "host":
        return None
    vlans: dict[int, int] = {}
    for row, table in enumerate(routes.table.tolist()):
        if vlans.setdefault(table, int(plan.vlans[row])) != plan.vlans[row]:
            return None
    tables: dict[int, Ints] = {}
    for table, vlan in vlans.items():
        next_hop = routes.next_hop[table]
        merged = tables.setdefault(vlan, next_hop)
        if merged is not next_hop:
            if ((merged >= 0) & (next_hop >= 0) & (merged != next_hop)).any():
                return None
            tables[vlan] = np.maximum(merged, next_hop)
    return {
        "vlan": plan.vlans.astype(np.uint16),
        "table_vlan": np.array(list(tables), dtype=np.uint16),
        **({} if routes.columns is None else {"columns": routes.columns}),
        "next_hop": _stacked(list(tables.values()), routes.next_hop),
        "first": routes.table.astype(np.uint32),
        "first_priority": np.ascontiguousarray(routes.first_priority),
        "changes": np.ascontiguousarray(routes.changes),
    }


def _stacked(tables: list[Ints], whole: Ints) -> Ints:
    """Return all tables as one array: ``whole``, which may be large, if they are its parts."""
    if len(tables) == len(whole):
        starts = [table.ctypes.data for table in tables]
        if starts == [part.ctypes.data for part in whole]:
            return np.ascontiguousarray(whole)
    stacked: Ints = tables[0][np.newaxis] if len(tables) == 1 else np.stack(tables)
    return stacked


def _of_paths(plan: Plan) -> dict[str, object]:
    """Return the explicit paths and the VLAN of each."""
    routes = plan.routes
    return {
        "vlan": np.ascontiguousarray(plan.pair_vlans, dtype=np.uint16).reshape(-1),
        "channels": np.ascontiguousarray(routes.channels),
        "priorities": np.ascontiguousarray(routes.priorities),
        "longest": routes.channels.shape[2],
    }


def _conflict(plan: Plan, kind: str, a: int, b: int, c: int, two: list[int]) -> str:
    channels = plan.channels
    if kind == "next hop":
        switch, to, (first, second) = channels.names[a], channels.names[c], channels.out_port[two]
        return f"VLAN {b} at {switch}: paths to {to} split by source, on ports {first} and {second}"
    switch = channels.names[channels.tail[b]]
    return (
        f"{switch}: frames from port {channels.in_port[a]} to port {channels.out_port[b]} on"
        f" priority {c} would need both priority {two[0]} and {two[1]}"
    )
