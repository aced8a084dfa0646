"""The forwarding state of a plan, from which its rules are compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from knotless._core import forwarding as core
from knotless.base.errors import PlanError
from knotless.forwarding.state import ForwardingState, channel_ends_of, members_of
from knotless.routing.plan import Plan


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
    arrays = {
        "row": routes.rows.astype(np.uint32),
        "flood_vlan": plan.vlans.astype(np.uint16),
        "tree": np.ascontiguousarray(routes.tree_channels),
        "tree_priority": np.ascontiguousarray(routes.tree_priorities),
        **plan.choice.state_arrays(plan),
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
