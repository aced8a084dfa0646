"""Plans whose paths are given one by one, for comparisons and experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from knotless.routing.plan import Plan
from knotless.routing.routes import ExplicitRoutes
from knotless.routing.vlans.assignment import FIRST_VLAN

Path = Sequence[tuple[int, int]]
"""The channels of a path with their priorities."""


def with_paths(plan: Plan, paths: Mapping[tuple[int, int], Path]) -> Plan:
    """Return a plan with other paths of unicasts.

    Parameters
    ----------
    plan : Plan
        The plan, whose broadcast trees and failures remain.
    paths : mapping
        The path of each (row of ``plan.routes``, index of the destination switch). A pair that is
        missing has none.

    Returns
    -------
    Plan
        The plan, in which switches tag. Each row has a VLAN of its own, since sources may need
        different next hops to one destination.

    Examples
    --------
    >>> from knotless.routing.plan import make_plan
    >>> from knotless.topologies import load
    >>> plan = make_plan(load("ring,4"), "updown")
    >>> direct = with_paths(plan, {(0, 1): [(0, 0)]})
    >>> [(hop.switch, hop.out_port) for hop in direct.path("h1", "h2")]
    [('s1', 2), ('s2', 1)]

    """
    rows, switches = len(plan.pair_vlans), len(plan.channels.names)
    longest = max(map(len, paths.values()), default=0)
    channels = np.full((rows, switches, longest), -1, dtype=np.int32)
    priorities = np.zeros(channels.shape, dtype=np.uint8)
    for (row, to), path in paths.items():
        for place, (channel, priority) in enumerate(path):
            channels[row, to, place], priorities[row, to, place] = channel, priority
    trees = plan.routes.tree_channels, plan.routes.tree_priorities
    vlans = np.repeat(np.arange(rows, dtype=np.int32)[:, None] + FIRST_VLAN, switches, axis=1)
    return replace(
        plan,
        routes=ExplicitRoutes(plan.routes.rows, channels, priorities, *trees),
        pair_vlans=vlans,
    )
