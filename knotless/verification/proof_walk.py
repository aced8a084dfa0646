"""The way of a packet to a wait of a cycle, for proof files: whatever tables switches have."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from knotless.base.errors import ProofError
from knotless.verification.imported_verdict import SentWitness
from knotless.verification.verdict_parts import Witness


class Place(NamedTuple):
    """A packet that enters a switch by a port: what it carries, its queue, and where it was before.

    Switches are called by name or number. The queue is called ``SWITCH:PORT/PRIORITY``; it is
    empty on the channel of a host.
    """

    switch: Any
    port: Any
    carries: Any = ()
    queue: str = ""
    before: Place | None = None


def channels_to(
    witness: Witness | SentWitness,
    start: Place,
    onward: Callable[[Place], Iterable[Place]],
    *,
    any_priority: bool = False,
) -> list[str]:
    """Return the channels, ``SWITCH:PORT``, on which a packet comes to the wait of a witness.

    ``onward`` yields the places to which the tables of a switch send the packet. The last channel
    is the one that it waits for. With ``any_priority`` channels are compared, not queues.

    Raises
    ------
    ProofError
        The tables do not send it there.

    """

    def name(queue: str) -> str:
        return _channel(queue) if any_priority else queue

    wait = name(witness.held), name(witness.wanted)
    places, seen = deque([start]), {start[:3]}
    while places:
        place = places.popleft()
        for after in onward(place):
            if (name(place.queue), name(after.queue)) == wait:
                return _passed(after)
            if after[:3] not in seen:
                seen.add(after[:3])
                places.append(after)
    raise ProofError(f"the tables do not send {witness.packet} from {witness.held} on")


def _passed(place: Place | None) -> list[str]:
    channels: list[str] = []
    while place is not None and place.queue:
        channels.append(_channel(place.queue))
        place = place.before
    return channels[::-1]


def _channel(queue: str) -> str:
    return queue.rpartition("/")[0]
