"""Hosts that failures separate: what they send to each other cannot be delivered."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from knotless.forwarding.state import ForwardingState
from knotless.topologies.failures import FAILED, host_parts, parts

Ints = NDArray[np.int64]


def unreachable_pairs(state: ForwardingState) -> int:
    """Return the number of ordered pairs of hosts that the failures of ``state`` separate."""
    if not state.failures:
        return 0
    part = np.array(host_parts(state.fabric, state.failures))
    return _apart(part, part)


def dropped_pairs(state: ForwardingState) -> tuple[int, ...]:
    """Return how many of them are on different switches: of all hosts, then by multicast group.

    With a group the second host of a pair is a member. Hosts on one switch that has failed are
    separated too, but its rules deliver what they send to each other.
    """
    groups = [range(len(state.fabric.hosts)), *_members(state)]
    if not state.failures:
        return (0,) * len(groups)
    of_switch = parts(state.fabric, state.failures)
    numbers = [n if n != FAILED else len(of_switch) + i for i, n in enumerate(of_switch)]
    index = state.fabric.switch_index
    part = np.array([numbers[index[host.switch]] for host in state.fabric.hosts])
    return tuple(_apart(part, part[list(group)]) for group in groups)


def _members(state: ForwardingState) -> Iterable[list[int]]:
    """Yield the members of each group, as indices of hosts."""
    for group in state.groups:
        yield [state.fabric.host_index[name] for name in group.members]


def _apart(part: Ints, of_receivers: Ints) -> int:
    """Return how many pairs of a sender and a receiver are of different parts."""
    count = int(part.max()) + 1
    together = np.bincount(part, minlength=count) * np.bincount(of_receivers, minlength=count)
    return len(part) * len(of_receivers) - int(together.sum())
