"""Waits of packets of a forwarding state under a flow control, and whether all can be blocked.

A node is a virtual channel: ``channel * 16 + priority``. An edge means that some packet can hold
the first while it waits for the second. If there is no cycle, no deadlock is possible. Packets
wait only for links that pause.

For adaptive choices the rule is another. A packet that waits for several virtual channels at once,
and takes the first that is free, is blocked only while all of them are. So the channel dependency
graph of such packets may have cycles although no deadlock is possible. What decides is a greatest
set: the largest set S of virtual channels of which each can be filled with packets that wait for
nothing but members of S. Packets with one next hop, packets that are bound to one of several on
arrival, and copies wait for each of their next hops alone; there the rule is that of cycles: S is
empty if and only if the graph has no cycle.

*If S is empty, no deadlock is possible.* A node here is the ingress buffer of a virtual channel:
(channel, priority), or the whole channel under PAUSE. A deadlock is a set of frames that never move
again, and D the virtual channels that these wait for. A frame waits for all its outputs at once,
each of them in the queue of that output; the head of a queue leaves as soon as its virtual channel
is not paused, whatever waits in other queues, and those behind it follow in order. So a frame that
never moves waits only for virtual channels that are paused for ever. Such a one has a full ingress
buffer behind it, and since whole frames are in one buffer, it is paused for ever only if frames in
it never move either: these wait for members of D alone. So each member of D can be filled by
packets that wait for nothing but members of D: D is part of S. The order in which members are
removed, of which each can be emptied when those before it can, is the evidence for that.

*If S is not empty*, the fabric has packets for a deadlock; as with cycles, whether they can meet
depends on the traffic. The model must hold: switches without a blocked head at inputs, a reserve
for each ingress buffer, hosts that take what arrives, and schedulers that leave out no queue for
ever.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks, 1987.
Duato, A necessary and sufficient condition for deadlock-free routing in cut-through and
store-and-forward networks, 1996.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from knotless._core import graph as core
from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import (
    Edges,
    cycle_names,
    find_cycle,
    merged,
    virtual_channel,
    waiting,
)
from knotless.verification.bubbles import AS_PROVEN, Bubbles, Rings, rings_of
from knotless.verification.verdict_parts import BUBBLE, Witness, theorem_of


def edges_of(state: ForwardingState) -> Edges:
    """Return (dependencies, 2) nodes, held and requested, if each priority waits separately."""
    rows = state.dependencies
    return np.stack([virtual_channel(rows[:, 0], rows[:, 1]), virtual_channel(*rows[:, 2:4].T)], 1)


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


class Wait(NamedTuple):
    """A packet that holds a node while it waits for the first free of several.

    ``source`` and ``destination`` are its numbers.
    """

    holds: int
    requests: list[int]
    source: int
    destination: int


class Step(NamedTuple):
    """A node of a set that can block itself, and what packets in it request.

    ``cause`` is the number of the dependency; or, from the number of these on, of the wait for
    several.
    """

    holds: int
    requests: list[int]
    cause: int


def first_free_waits(state: ForwardingState, flow_control: FlowControl) -> list[Wait]:
    """Return the waits for the first free of several that exist under a flow control."""
    links = flow_control.switch_links
    if not links.pauses:
        return []
    waits = []
    for wait in state.first_free:
        nodes = np.array([virtual_channel(*hop) for hop in [wait.held, *wait.requested]])
        holds, *requests = merged(nodes.astype(np.int64), links).tolist()
        waits.append(Wait(holds, sorted(set(requests)), wait.source, wait.destination))
    return waits


def blocking_steps(edges: Edges, waits: Sequence[Wait]) -> list[Step]:
    """Return a part of the nodes that can block itself, a step for each; empty: there is none.

    Parameters
    ----------
    edges : array of shape (dependencies, 2)
        Nodes that are held while another is waited for alone.
    waits : sequence of Wait
        Waits for the first free of several, or by merged nodes of one.

    Returns
    -------
    list of Step
        A shortest cycle of waits for one node alone, if they have one. Else a part of the greatest
        set that can block itself, ascending.

    """
    single = [number for number, wait in enumerate(waits) if len(wait.requests) == 1]
    merged_ones = [(waits[number].holds, waits[number].requests[0]) for number in single]
    alone = np.concatenate([edges, np.array(merged_ones, dtype=np.int64).reshape(-1, 2)])
    cycle = find_cycle(alone)
    if cycle:
        causes = [*range(len(edges)), *(len(edges) + number for number in single)]
        following = [*cycle[1:], *cycle[:1]]
        return [
            Step(holds, [requests], causes[row])
            for holds, requests, row in zip(cycle, following, first_rows(alone, cycle), strict=True)
        ]
    if not waits:
        return []
    all_waits = _all_waits(edges, waits)
    _, _, witness = _blocking(all_waits)
    return [Step(*all_waits[number], number) for number in witness]


def removal_order(edges: Edges, waits: Sequence[Wait]) -> list[int]:
    """Return the evidence that no deadlock is possible, as an order.

    All nodes that are held, in an order in which each of their waits has a member that comes
    before, or that is never held while another is waited for. Fewer nodes if a deadlock is
    possible.
    """
    return _blocking(_all_waits(edges, waits))[0]


def _all_waits(edges: Edges, waits: Sequence[Wait]) -> list[tuple[int, list[int]]]:
    single = [(holds, [requests]) for holds, requests in edges.tolist()]
    return single + [(wait.holds, wait.requests) for wait in waits]


def _blocking(waits: Sequence[tuple[int, list[int]]]) -> tuple[list[int], list[int], list[int]]:
    requests = np.array([node for _, of_wait in waits for node in of_wait], dtype=np.int32)
    holds = np.array([holds for holds, _ in waits], dtype=np.int32)
    ends = np.cumsum([len(of_wait) for _, of_wait in waits]).astype(np.int32)
    nodes = 1 + max(int(holds.max(initial=0)), int(requests.max(initial=0)))
    return core.blocking(nodes, holds, ends, requests)


def witnesses_of_steps(
    state: ForwardingState, rows: Edges, waits: Sequence[Wait], steps: Sequence[Step]
) -> tuple[Witness, ...]:
    """Return a packet for each step.

    ``rows`` (dependencies, 6) are those of the ``edges`` from which the steps come, ``waits`` the
    others.
    """
    witnesses = []
    for step in steps:
        if step.cause < len(rows):
            source, destination = rows[step.cause, 4:].tolist()
        else:
            wait = waits[step.cause - len(rows)]
            source, destination = wait.source, wait.destination
        held, *requested = cycle_names(state.channels, [step.holds, *step.requests])
        names = state.fabric.hosts[source].name, state.destination_name(destination)
        witnesses.append(Witness(held, " or ".join(requested), *names))
    return tuple(witnesses)


class Judged(NamedTuple):
    """The verdict on the dependencies of a state under a flow control.

    ``cycle`` is a shortest cycle of all dependencies; ``steps`` are empty if no deadlock is
    possible, otherwise a set that blocks itself, with ``witnesses``. ``rings`` are the cycles if
    there are bubbles, and no packet waits for the first free of several.
    """

    cycle: list[int]
    steps: list[Step]
    witnesses: tuple[Witness, ...]
    rings: Rings | None = None

    @property
    def theorem(self) -> str | None:
        """The name of what proves that no deadlock is possible; None if one is."""
        if self.rings is not None and not self.steps:
            return BUBBLE
        return theorem_of(is_acyclic=not self.cycle, is_safe=not self.steps)


def waits_of(state: ForwardingState, flow_control: FlowControl) -> tuple[Edges, Edges, list[Wait]]:
    """Return what packets of a state wait for under a flow control.

    The rows (dependencies, 6) of what is waited for alone, their nodes (dependencies, 2), and the
    waits for the first free of several.
    """
    links = flow_control.switch_links
    pausing = links.pauses
    alone = state.alone if pausing else np.zeros(len(state.alone), dtype=np.bool_)
    edges = merged(edges_of(state)[alone], links) if pausing else edges_of(state)[alone]
    return state.dependencies[alone], edges, first_free_waits(state, flow_control)


def judge(
    state: ForwardingState, flow_control: FlowControl, bubbles: Bubbles = AS_PROVEN
) -> Judged:
    """Judge the dependencies of ``state`` under a flow control; ``bubbles`` are those that it has.

    Where all cycles are rings and bubbles are as their theorem asks, no deadlock is possible.
    """
    links = flow_control.switch_links
    classes = merged(np.arange(VCS_PER_CHANNEL), links).tolist()
    # Without a cycle no part of the dependencies can block itself, and none of them is looked at.
    if not links.pauses or (not state.concurrent and state.core.is_acyclic(classes)):
        return Judged([], [], ())
    rows, edges, waits = waits_of(state, flow_control)
    steps = blocking_steps(edges, waits)
    cycle = [step.holds for step in steps]
    if waits and any(len(step.requests) > 1 for step in steps or waits):
        cycle = find_cycle(merged(edges_of(state), flow_control.switch_links))
    if flow_control is FlowControl.BUBBLE and steps and not waits:
        rings = rings_of(edges)
        if len(rings.tangled):
            rows, edges = _among(rows, edges, rings.tangled)
            steps = blocking_steps(edges, waits)
            cycle = [step.holds for step in steps]
        elif not bubbles.faults:
            return Judged(cycle, [], (), rings)
        return Judged(cycle, steps, witnesses_of_steps(state, rows, waits, steps), rings)
    return Judged(cycle, steps, witnesses_of_steps(state, rows, waits, steps))


def _among(rows: Edges, edges: Edges, wanted: Edges) -> tuple[Edges, Edges]:
    """Return the rows whose edges are among ``wanted``, and these edges."""
    steps = {(holds, requests) for holds, requests in wanted.tolist()}
    kept = [(holds, requests) in steps for holds, requests in edges.tolist()]
    return rows[kept], edges[kept]
