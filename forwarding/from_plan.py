"""The forwarding state of a plan: what its rules are compiled from."""

from __future__ import annotations

import numpy as np

from forwarding.state import ForwardingState, links_of, members_of
from knotless_core import forwarding as core
from routing.plan import Plan
from topologies.errors import PlanError


def state_of_plan(plan: Plan) -> ForwardingState:
    """Return what every switch is to do by ``plan``.

    Raises
    ------
    PlanError
        Switches forward by (VLAN, destination) and change priorities by (port in, port out,
        priority): they cannot do what the plan wants.

    """
    fabric, channels, routes = plan.fabric, plan.channels, plan.routes
    fabric.refuse_hub("given rules")
    links = links_of(fabric, channels)
    arrays = {
        "row": routes.rows.astype(np.uint32),
        "vlan": np.ascontiguousarray(plan.pair_vlans, dtype=np.uint16).reshape(-1),
        "flood_vlan": plan.vlans.astype(np.uint16),
        "tree": np.ascontiguousarray(routes.tree_channels),
        "tree_priority": np.ascontiguousarray(routes.tree_priorities),
        "channels": np.ascontiguousarray(routes.channels),
        "priorities": np.ascontiguousarray(routes.priorities),
        "longest": routes.channels.shape[2],
    }
    try:
        found = core.of_plan(
            len(fabric.switches),
            links.leaves,
            links.enters,
            links.hosts,
            members_of(fabric, plan.multicast),
            plan.tagging == "host",
            arrays,
        )
    except LookupError as conflict:
        raise PlanError(_conflict(plan, *conflict.args)) from None
    return ForwardingState(fabric, channels, plan.multicast, found)


def _conflict(plan: Plan, kind: str, a: int, b: int, c: int, two: list[int]) -> str:
    channels = plan.channels
    if kind == "next hop":
        here, to, (first, second) = channels.names[a], channels.names[c], channels.out_port[two]
        return (
            f"VLAN {b} at {here}: paths to {to} part by their source, by ports {first} and {second}"
        )
    switch = channels.names[channels.tail[b]]
    return (
        f"{switch}: frames from port {channels.in_port[a]} to port {channels.out_port[b]} on"
        f" priority {c} would have to go on as both {two[0]} and {two[1]}"
    )
