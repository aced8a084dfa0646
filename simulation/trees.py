"""Multicast trees as the simulator's arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from routing.plan import Plan
from routing.trees import pruned
from simulation.channels import ChannelTable
from simulation.errors import SimulationError


def trees_of(
    plan: Plan, table: ChannelTable, senders: Sequence[tuple[str, int]]
) -> list[NDArray[np.uint32]]:
    """Return the tree of each of ``senders``, (host, number of a group of the plan).

    Raises SimulationError for a host or a group that is not there.
    """
    groups = {group.number: group for group in plan.multicast}
    trees = []
    for host, number in senders:
        if host not in plan.fabric.host_index:
            raise SimulationError(f"{plan.fabric.name} has no host {host!r}")
        if number not in groups:
            raise SimulationError(f"{host} sends to multicast group {number}: declare it")
        trees.append(multicast_tree(plan, table, host, list(groups[number].members)))
    return trees


def multicast_tree(
    plan: Plan, table: ChannelTable, source: str, members: list[str]
) -> NDArray[np.uint32]:
    """Return the way of a multicast of host ``source``: (switch, channel that leaves it, priority).

    It is the one that the compiled rules give it. A switch never sends a frame back, so
    that the source itself gets no copy though its channel is among the rows.
    """
    fabric, channels, routes = plan.fabric, plan.channels, plan.routes
    root = fabric.switch_index[fabric.hosts[fabric.host_index[source]].switch]
    at = [fabric.hosts[fabric.host_index[name]] for name in {*members, source}]
    wanted = np.zeros(len(channels.names), dtype=np.bool_)
    wanted[[fabric.switch_index[host.switch] for host in at]] = True
    tree = pruned(channels, routes.tree_channels, wanted)[root]
    place = table.place
    rows = []
    for switch in np.nonzero(tree >= 0)[0].tolist():
        channel = int(tree[switch])
        tail = int(channels.tail[channel])
        name = f"{channels.names[tail]}:{channels.out_port[channel]}"
        rows.append((tail, place[name], int(routes.tree_priorities[root, switch])))
    for host in at:
        number = place[f"{host.switch}:{host.port}"]
        rows.append((fabric.switch_index[host.switch], number, 0))
    return np.array(rows, dtype=np.uint32).reshape(-1, 3)
