"""Packets and hosts that show the steps of a cycle through hosts, with their messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import virtual_channel
from knotless.verification.endpoint_waits import EndpointWaits
from knotless.verification.verdict_parts import Witness

Request = tuple[int, Sequence[int]]
"""A node that is held, and those of which its packets take the first that is free."""
_FRAME = "frame"
"""In place of a message class, for what is sent to many hosts or to an unknown address."""


@dataclass(frozen=True)
class MessageWitness(Witness):
    """A packet of a message that holds one channel of a cycle while it waits for the next."""

    message: str

    @property
    def packet(self) -> str:
        """The packet as text, with its message class."""
        return f"a {self.message} of {super().packet}"


@dataclass(frozen=True)
class HostWitness(MessageWitness):
    """A host, the destination, that must send ``sends`` before it takes a message of the source."""

    sends: str

    @property
    def text(self) -> str:
        """The step of the cycle as a clause."""
        return host_step(self.destination, self.sends, self.message, self.source)


def host_step(host: str, sends: str, message: str, sender: str) -> str:
    """Return a step of a cycle through a host as a clause."""
    article = "an" if sends[0] in "aeiouAEIOU" else "a"
    return f"{host} must send {article} {sends} before it takes the {message} of {sender}"


def witnesses_of(waits: EndpointWaits, requests: Sequence[Request]) -> tuple[Witness, ...]:
    """Return a packet for each step between channels, and a host for each step through one."""
    witnesses: list[Witness] = []
    for number, (holds, requested) in enumerate(requests):
        host = waits.crossed(holds, requested[0])
        if host is None:
            message = _message(waits, requests, number)
            witnesses.append(_of_packet(waits, holds, requested, message))
        else:
            before = next(h for h, all_requested in requests if holds in all_requested)
            sender = _of_packet(waits, before, [holds], "").source
            message, sends = next(waits.messages(holds, requested[0]))
            names = waits.name_of(holds), waits.name_of(requested[0]), sender
            receiver = waits.state.fabric.hosts[host].name
            witnesses.append(HostWitness(*names, receiver, message, sends))
    return tuple(witnesses)


def _message(waits: EndpointWaits, requests: Sequence[Request], number: int) -> str:
    """Return the class of the packet of a step: of those that share a channel, one of the cycle.

    On the channel to a host it is the class that waits there, on that from a host the one sent.
    """
    holds, requested = requests[number]
    for after, then in requests:
        if after in requested and waits.crossed(after, then[0]) is not None:
            return next(waits.messages(after, then[0]))[0]
    for before, then in requests:
        if holds in then and waits.crossed(before, holds) is not None:
            return next(waits.messages(before, holds))[1]
    return next(waits.classes_at(holds), _FRAME)


def _of_packet(
    waits: EndpointWaits, holds: int, requested: Sequence[int], message: str
) -> MessageWitness:
    held, *names = map(waits.name_of, [holds, *requested])
    source, destination = _packet(waits, holds, requested[0])
    return MessageWitness(held, " or ".join(names), source, destination, message)


def _packet(waits: EndpointWaits, holds: int, requests: int) -> tuple[str, str]:
    """Return the names of the source and the destination of a packet with this wait."""
    state = waits.state
    if waits.model.roles is not None:
        for source, destination in waits.pairs:
            if _takes(waits, (source, destination), holds, requests):
                return state.destination_name(source), state.destination_name(destination)
    if waits.host_of(holds) is None and waits.host_of(requests) is None:
        row = waits.row_of(holds, requests)
        source, destination = state.dependencies[row, 4:].tolist()
        return state.destination_name(source), state.destination_name(destination)
    for source, destination in _candidates(waits, holds, requests):
        if _takes(waits, (source, destination), holds, requests):
            return state.destination_name(source), state.destination_name(destination)
    return "a host", "an address"


def _candidates(waits: EndpointWaits, holds: int, requests: int) -> Iterator[tuple[int, int]]:
    """Yield the packets that may have a wait at the link of a host, unicasts first."""
    state = waits.state
    sender, receiver = waits.host_of(holds), waits.host_of(requests)
    sources = range(len(state.fabric.hosts)) if sender is None else [sender[0]]
    for source in sources:
        others = range(len(state.fabric.hosts)) if receiver is None else [receiver[0]]
        yield from ((source, other) for other in others)
    for source in sources:
        for group in {group for group, senders in state.core.floods if source in senders}:
            yield source, state.core.flood_of(source, group)
        for address in dict.fromkeys(state.core.unassigned):
            number = state.core.unassigned_of(source, address)
            if number is not None:
                yield source, number


def _takes(waits: EndpointWaits, packet: tuple[int, int], holds: int, requests: int) -> bool:
    """Return whether a packet takes a channel, and then at the same switch another."""
    state, channels = waits.state, len(waits.state.channels)
    try:
        trace = state.trace_number(state.destination_name(packet[0]), packet[1])
    except ValueError:
        return False  # what a host sends to itself was not followed
    sent = [virtual_channel(waits.sends_on(packet[0]), 0)]
    sent += [virtual_channel(h.channel, h.priority) for h in trace.hops if h.channel < channels]
    received = [waits.receives_on(host) * VCS_PER_CHANNEL for host, _ in trace.delivered]
    nodes = waits.shifted(np.array([*sent, *received], dtype=np.int64))
    if holds not in nodes or requests not in nodes:
        return False
    return _leaves(waits, state, requests) == _enters(waits, state, holds)


def _enters(waits: EndpointWaits, state: ForwardingState, node: int) -> int:
    """Return the switch that a node's packets enter."""
    at_host = waits.host_of(node)
    if at_host is None:
        return int(state.channels.head[node // VCS_PER_CHANNEL])
    return state.fabric.switch_index[state.fabric.hosts[at_host[0]].switch]


def _leaves(waits: EndpointWaits, state: ForwardingState, node: int) -> int:
    """Return the switch that packets leave for a node."""
    at_host = waits.host_of(node)
    if at_host is None:
        return int(state.channels.tail[node // VCS_PER_CHANNEL])
    return state.fabric.switch_index[state.fabric.hosts[at_host[0]].switch]
