"""All states of tiny fabrics whose hosts answer messages: buffers of one frame, one at a time.

A slow model that shares nothing with the verdict but the paths of packets. Frames are messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import NamedTuple

from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.traffic.endpoints import EndpointModel

Buffer = tuple[str, int, int]
"""``sends`` or ``receives`` and a host, or ``channel`` and its number; a class of priorities."""
Kind = tuple[str, int, int, str]
"""A message class, the source and the destination, and the class that began the transaction."""


class TooManyStatesError(Exception):
    """The states are too many for a test."""


class Place(NamedTuple):
    """A frame in a buffer: its kind, and how many buffers of its path it has left behind."""

    kind: Kind
    step: int


class Network(NamedTuple):
    """The contents of all buffers, what hosts owe, and the transactions that are not complete."""

    frames: frozenset[tuple[Buffer, Place]]
    owed: tuple[tuple[Kind, str], ...] = ()
    """The answers that hosts have to send, each with the class for which it is."""
    open: tuple[tuple[str, int, int], ...] = ()
    """The class, source and destination of each transaction with a bound."""


class AllStates:
    """Follows every order of events from an empty network on."""

    def __init__(
        self, state: ForwardingState, model: EndpointModel, control: FlowControl, vcs: int
    ) -> None:
        self.model, self.control, self.vcs = model, control, vcs
        self.hosts = len(state.fabric.hosts)
        self.names = [host.name for host in state.fabric.hosts]
        self.reserves = {one.message: one.reserve for one in model.reserves(self.hosts)}
        self.paths = {
            (name, *pair): self._path(state, name, *pair)
            for name in model.classes
            for pair in permutations(range(self.hosts), 2)
        }
        self.seen: set[Network] = set()

    def _path(
        self, state: ForwardingState, name: str, source: int, destination: int
    ) -> list[Buffer]:
        first = self.vcs * self.model.classes[name].priority
        classes = self.control.switch_links.classes
        hops = state.trace_number(state.fabric.hosts[source].name, destination).hops
        between = [hop for hop in hops if hop.channel < len(state.channels)]
        return [
            ("sends", source, classes[first]),
            *(("channel", hop.channel, classes[first + hop.priority]) for hop in between),
            ("receives", destination, classes[first]),
        ]

    def deadlocks(self, most: int) -> Iterator[tuple[Buffer, ...]]:
        """Yield the cycles of full buffers that are reached.

        What is full then stays so, and is not followed further. Raises TooManyStatesError.
        """
        waiting = [Network(frozenset())]
        self.seen = {*waiting}
        reported = set[frozenset[Buffer]]()
        while waiting:
            network = waiting.pop()
            cycle = self._cycle(network)
            if cycle and frozenset(cycle) not in reported:
                reported.add(frozenset(cycle))
                yield cycle
            if cycle:
                continue
            for after in self._next(network):
                if after not in self.seen:
                    self.seen.add(after)
                    waiting.append(after)
            if len(self.seen) > most:
                raise TooManyStatesError

    def _cycle(self, network: Network) -> tuple[Buffer, ...]:
        full = dict(network.frames)
        awaited = {
            buffer: target
            for buffer, place in full.items()
            if (target := self._awaited(network, place)) in full
        }
        for start in awaited:
            path = [start]
            while (target := awaited.get(path[-1])) is not None and target not in path:
                path.append(target)
            if target == start:
                return tuple(path)
        return ()

    def _awaited(self, network: Network, place: Place) -> Buffer | None:
        """Return the one buffer that a frame waits for; None if it waits for none."""
        name, source, destination, _ = place.kind
        path = self.paths[name, source, destination]
        if place.step + 1 < len(path):
            return path[place.step + 1]
        required = self.model.classes[name].sends_before_taking
        if not required or self._has_reserve(network, name, destination):
            return None
        return self.paths[required[0], destination, source][0]

    def _has_reserve(self, network: Network, name: str, host: int) -> bool:
        held = sum(1 for kind, cause in network.owed if cause == name and kind[1] == host)
        return held < self.reserves[name]

    def _next(self, network: Network) -> Iterator[Network]:
        full = dict(network.frames)
        yield from self._begun(network, full)
        for buffer, place in network.frames:
            name, source, destination, began = place.kind
            path, rest = self.paths[name, source, destination], network.frames - {(buffer, place)}
            if place.step + 1 < len(path):
                onward = path[place.step + 1]
                if onward not in full:
                    moved = (onward, Place(place.kind, place.step + 1))
                    yield network._replace(frames=rest | {moved})
                continue
            required = self.model.classes[name].sends_before_taking
            if not required:
                yield Network(rest, network.owed, self._left(network, place.kind, destination))
                continue
            answer = (required[0], destination, source, began)
            if self._has_reserve(network, name, destination):
                owed = tuple(sorted([*network.owed, (answer, name)]))
                yield Network(rest, owed, network.open)
            else:
                yield from self._sent(network._replace(frames=rest), full, answer)
        for debt in {*network.owed}:
            others = [*network.owed]
            others.remove(debt)
            yield from self._sent(network._replace(owed=tuple(others)), full, debt[0])

    def _sent(self, network: Network, full: dict[Buffer, Place], answer: Kind) -> Iterator[Network]:
        """Yield the network after an answer has left its host, if it can."""
        name, source, destination, _ = answer
        first = self.paths[name, source, destination][0]
        if first not in full:
            frames = network.frames | {(first, Place(answer, 0))}
            yield Network(frames, network.owed, self._left(network, answer, source))

    def _begun(self, network: Network, full: dict[Buffer, Place]) -> Iterator[Network]:
        roles = self.model.roles
        for name, pair in product(self.model.classes, permutations(range(self.hosts), 2)):
            if roles is not None and not roles.begins(*(self.names[host] for host in pair)):
                continue
            one, transaction = self.model.classes[name], (name, *pair)
            first = self.paths[transaction][0]
            if name in self.model.required or first in full:
                continue
            is_counted = one.outstanding is not None and bool(one.sends_before_taking)
            if is_counted and network.open.count(transaction) >= (one.outstanding or 0):
                continue
            begun = [*network.open, transaction] if is_counted else [*network.open]
            frames = network.frames | {(first, Place((*transaction, name), 0))}
            yield Network(frames, network.owed, tuple(sorted(begun)))

    def _left(self, network: Network, kind: Kind, host: int) -> tuple[tuple[str, int, int], ...]:
        """Return the transactions that are not complete after a host has sent or taken a message.

        One is complete for the host that began it, when this has sent or taken the last message.
        """
        name, source, destination, began = kind
        depth, last = 0, began
        while last != name:
            last, depth = self.model.classes[last].sends_before_taking[0], depth + 1
        beginner, other = (destination, source) if depth % 2 else (source, destination)
        transaction = (began, beginner, other)
        if self.model.classes[name].sends_before_taking or host != beginner:
            return network.open
        left = [*network.open]
        if transaction in left:
            left.remove(transaction)
        return tuple(left)
