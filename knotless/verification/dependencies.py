"""The channel dependency graph of a forwarding state under a flow control, and its cycles.

A node is a virtual channel: ``channel * 16 + priority``. An edge means that some packet can hold
the first while it waits for the second. If there is no cycle, no deadlock is possible. Packets
wait only for links that pause.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks, 1987.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.routing.flow_control import Edges, waiting
from knotless.routing.graphs.dependencies import cycle_names, find_cycle, virtual_channel
from knotless.verification.verdict_parts import Witness


def edges_of(state: ForwardingState) -> Edges:
    """Return (dependencies, 2) nodes, held and requested, if each priority waits separately."""
    rows = state.dependencies
    return np.stack([virtual_channel(rows[:, 0], rows[:, 1]), virtual_channel(*rows[:, 2:4].T)], 1)


def priorities_of(state: ForwardingState) -> int:
    """Return the number of priorities in which packets wait between switches."""
    return len(np.unique(state.dependencies[:, [1, 3]]))


def edges_of_pairs(state: ForwardingState, pairs: Iterable[tuple[str, str]]) -> Edges:
    """Return the dependencies of the packets from the first to the second host of each pair.

    Only for states without multipath, in which each packet takes one link after the other.
    """
    edges: set[tuple[int, int]] = set()
    for source, destination in pairs:
        hops = state.trace(source, destination).hops
        nodes = [
            virtual_channel(h.channel, h.priority) for h in hops if h.channel < len(state.channels)
        ]
        edges.update(pairwise(nodes))
    return np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)


def cycle_of(state: ForwardingState, flow_control: FlowControl) -> list[int]:
    """Return a shortest cycle of dependencies under a flow control, or an empty list."""
    return find_cycle(waiting(edges_of(state), flow_control))


def longest_chain(edges: Edges) -> int | None:
    """Return the number of nodes of the longest chain of dependencies; None if there is a cycle."""
    requested_by: dict[int, list[int]] = {}
    missing: dict[int, int] = {}
    for holds, requests in {(int(holds), int(requests)) for holds, requests in edges.tolist()}:
        requested_by.setdefault(holds, []).append(requests)
        missing[requests] = missing.get(requests, 0) + 1
    length = {node: 1 for node in requested_by if node not in missing}
    ready = list(length)
    for holds in ready:
        for requests in requested_by.get(holds, ()):
            length[requests] = max(length.get(requests, 0), length[holds] + 1)
            missing[requests] -= 1
            if not missing[requests]:
                ready.append(requests)
    return None if any(missing.values()) else max(length.values(), default=1)


def witnesses(
    state: ForwardingState, cycle: Sequence[int], flow_control: FlowControl
) -> tuple[Witness, ...]:
    """Return a packet for each step of a cycle found by :func:`cycle_of`."""
    edges = waiting(edges_of(state), flow_control)
    names = cycle_names(state.channels, cycle)
    steps = []
    for place, row in enumerate(first_rows(edges, cycle)):
        source, destination = state.dependencies[row, 4:].tolist()
        steps.append(
            Witness(
                names[place],
                names[(place + 1) % len(names)],
                state.fabric.hosts[source].name,
                state.destination_name(destination),
            )
        )
    return tuple(steps)


def witnesses_of(
    state: ForwardingState, names: Sequence[str], flow_control: FlowControl
) -> tuple[Witness, ...]:
    """Return a packet for each step of a cycle of ``SWITCH:PORT/PRIORITY``; none if unknown."""
    edges = waiting(edges_of(state), flow_control)
    nodes = np.unique(edges).tolist()
    node_of = dict(zip(cycle_names(state.channels, nodes), nodes, strict=True))
    cycle = [node_of.get(name, -1) for name in names]
    steps = {(holds, requests) for holds, requests in edges.tolist()}
    if not set(pairwise([*cycle, *cycle[:1]])) <= steps:
        return ()
    return witnesses(state, cycle, flow_control)


def first_rows(edges: Edges, cycle: Sequence[int]) -> list[int]:
    """Return for each step of a cycle the first row of ``edges`` that is this step."""
    steps = zip(cycle, [*cycle[1:], *cycle[:1]], strict=True)
    return [int(np.flatnonzero((edges == step).all(axis=1))[0]) for step in steps]
