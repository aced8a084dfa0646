"""The channel dependency graph of a forwarding state under a flow control, and its cycles.

A node is a virtual channel: ``channel * 8 + priority``. There is an edge from one to another
where some packet holds the first while it waits for the second. Without a cycle no deadlock can
happen. Only links that pause make packets wait.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks, 1987.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

from forwarding.state import ForwardingState
from routing.cdg import cycle_names, find_cycle, virtual_channel
from routing.flow_control import waiting

Edge = tuple[int, int]


@dataclass(frozen=True)
class Witness:
    """A packet that holds one channel of a cycle while it waits for the next (``s1:2/0`` ..).

    ``destination`` is a host, ``all`` or ``group N``.
    """

    held: str
    wanted: str
    source: str
    destination: str

    def as_json(self) -> dict[str, str]:
        """Return it as plain values."""
        return asdict(self)


def edges_of(state: ForwardingState) -> set[Edge]:
    """Return the dependencies of all packets where each priority waits by itself (PFC)."""
    return {
        (virtual_channel(held, p), virtual_channel(wanted, q))
        for held, p, wanted, q, _, _ in state.dependencies.tolist()
    }


def priorities_of(state: ForwardingState) -> int:
    """Return how many priorities packets wait in, or are waited for, between switches."""
    return len(np.unique(state.dependencies[:, [1, 3]]))


def edges_of_pairs(state: ForwardingState, pairs: Iterable[tuple[str, str]]) -> set[Edge]:
    """Return the dependencies of what the first hosts of ``pairs`` send to the second ones.

    Only for states without multipath: each packet takes one link after the other.
    """
    edges: set[Edge] = set()
    for source, destination in pairs:
        hops = state.trace(source, destination).hops
        nodes = [virtual_channel(h.link, h.priority) for h in hops if h.link < len(state.channels)]
        edges.update(pairwise(nodes))
    return edges


def cycle_of(state: ForwardingState, flow_control: str) -> list[int]:
    """Return a shortest cycle of dependencies under a flow control, or an empty list."""
    return find_cycle(waiting(edges_of(state), flow_control))


def witnesses(
    state: ForwardingState, cycle: Sequence[int], flow_control: str
) -> tuple[Witness, ...]:
    """Return for each step of a cycle of :func:`cycle_of` a packet that takes it."""
    causes: dict[Edge, tuple[int, int]] = {}
    for held, p, wanted, q, source, destination in state.dependencies.tolist():
        for edge in waiting({(virtual_channel(held, p), virtual_channel(wanted, q))}, flow_control):
            causes.setdefault(edge, (source, destination))
    names = cycle_names(state.channels, list(cycle))
    found = []
    for place, node in enumerate(cycle):
        after = (place + 1) % len(cycle)
        source, destination = causes[node, cycle[after]]
        sender = state.fabric.hosts[source].name
        found.append(
            Witness(names[place], names[after], sender, state.destination_name(destination))
        )
    return tuple(found)
