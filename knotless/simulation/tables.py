"""The simulator's tables and trees, made from a forwarding state.

The forwarding state alone determines what switches do. It numbers the channels between switches
first, then those of hosts; the simulator numbers channels by the ports of each switch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from knotless._core import simulator
from knotless.base.errors import SimulationError
from knotless.forwarding.state import ForwardingState
from knotless.simulation.channels import ChannelTable


def tables_of(state: ForwardingState, table: ChannelTable) -> simulator.Tables:
    """Return the forwarding tables for unicasts, with the channel numbers of ``table``.

    Raises SimulationError if a switch copies unicasts or its rules cannot be followed.
    """
    channels = state.channels
    numbers = _numbers(state, table)[: len(channels)]
    of_switches = table.leaves[table.leaves >= 0]
    first = np.searchsorted(of_switches, np.arange(len(channels.names)))
    try:
        return simulator.Tables(state.core, (numbers - first[channels.tail]).astype(np.uint16))
    except ValueError as error:
        raise SimulationError(f"{state.fabric.name}: {error}") from None


def trees_of(
    state: ForwardingState, table: ChannelTable, senders: Sequence[tuple[str, int]]
) -> list[NDArray[np.uint32]]:
    """Return the tree of each of ``senders``, (host, number of a multicast group of the state).

    Number 0 is the tree of broadcasts.

    A tree has rows of (switch, output channel, priority): first channels between switches,
    sorted by the switch that they enter, then channels to hosts in order. Raises
    SimulationError if a host or group does not exist.
    """
    groups = {0: 0} | {group.number: place for place, group in enumerate(state.groups, 1)}
    numbers = _numbers(state, table)
    trees = []
    for host, group in senders:
        if host not in state.fabric.host_index:
            raise SimulationError(f"{state.fabric.name} has no host {host!r}")
        if group not in groups:
            raise SimulationError(f"{host} sends to multicast group {group}: declare it")
        trees.append(_tree(state, table, numbers, host, groups[group]))
    return trees


def _tree(
    state: ForwardingState, table: ChannelTable, numbers: NDArray[np.int64], host: str, group: int
) -> NDArray[np.uint32]:
    hops = state.flood(host, group).hops
    channels = np.array([hop.channel for hop in hops], dtype=np.int64)
    rows = np.zeros((len(hops), 3), dtype=np.uint32)
    rows[:, 1] = numbers[channels]
    rows[:, 0] = table.leaves[rows[:, 1]]
    rows[:, 2] = [hop.priority for hop in hops]
    # Sorted by the switch entered; hosts come last, by number.
    enters = np.where(channels < len(state.channels), table.enters[rows[:, 1]], 2**32 + channels)
    ordered: NDArray[np.uint32] = rows[np.lexsort((channels, enters))]
    return ordered


def _numbers(state: ForwardingState, table: ChannelTable) -> NDArray[np.int64]:
    """Return the simulator's number of each channel of the state, those to hosts last."""
    channels, hosts = state.channels, state.fabric.hosts
    index = state.fabric.switch_index
    switches = np.array([index[host.switch] for host in hosts], dtype=np.int64)
    ports = np.array([host.port for host in hosts], dtype=np.int64)
    return table.at_ports(
        np.concatenate([channels.tail, switches]), np.concatenate([channels.out_port, ports])
    )
