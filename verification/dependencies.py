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
from routing.flow_control import Edges, waiting
from routing.graphs.dependencies import cycle_names, find_cycle, virtual_channel


@dataclass(frozen=True)
class Witness:
    """A packet that holds one channel of a cycle while it waits for the next (``s1:2/0`` ..).

    ``destination`` is a host, ``all`` or ``multicast:N``.
    """

    held: str
    wanted: str
    source: str
    destination: str

    def as_json(self) -> dict[str, str]:
        """Return it as plain values."""
        return asdict(self)


def edges_of(state: ForwardingState) -> Edges:
    """Return (dependencies, 2) nodes: what is held and waited for where priorities wait apart."""
    rows = state.dependencies
    return np.stack([virtual_channel(rows[:, 0], rows[:, 1]), virtual_channel(*rows[:, 2:4].T)], 1)


def priorities_of(state: ForwardingState) -> int:
    """Return how many priorities packets wait in, or are waited for, between switches."""
    return len(np.unique(state.dependencies[:, [1, 3]]))


def edges_of_pairs(state: ForwardingState, pairs: Iterable[tuple[str, str]]) -> Edges:
    """Return the dependencies of what the first hosts of ``pairs`` send to the second ones.

    Only for states without multipath: each packet takes one link after the other.
    """
    edges: set[tuple[int, int]] = set()
    for source, destination in pairs:
        hops = state.trace(source, destination).hops
        nodes = [virtual_channel(h.link, h.priority) for h in hops if h.link < len(state.channels)]
        edges.update(pairwise(nodes))
    return np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)


def cycle_of(state: ForwardingState, flow_control: str) -> list[int]:
    """Return a shortest cycle of dependencies under a flow control, or an empty list."""
    return find_cycle(waiting(edges_of(state), flow_control))


def witnesses(
    state: ForwardingState, cycle: Sequence[int], flow_control: str
) -> tuple[Witness, ...]:
    """Return for each step of a cycle of :func:`cycle_of` a packet that takes it."""
    edges = waiting(edges_of(state), flow_control)
    names = cycle_names(state.channels, cycle)
    found = []
    for place, held in enumerate(cycle):
        after = (place + 1) % len(cycle)
        cause = int(np.flatnonzero((edges == (held, cycle[after])).all(axis=1))[0])
        source, destination = state.dependencies[cause, 4:].tolist()
        sender = state.fabric.hosts[source].name
        found.append(
            Witness(names[place], names[after], sender, state.destination_name(destination))
        )
    return tuple(found)
