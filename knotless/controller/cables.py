"""The cables that probes have crossed, where nothing is declared. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

CONFIRMED = 2
"""So many probes must arrive in each direction."""
_MOST_RECEIVERS = 3
"""So many ports at which probes of one port arrive are remembered: two are too many already."""

At = tuple[int, int]
"""A dpid and a port."""


@dataclass
class Cables:
    """Where probes of each port have arrived."""

    _arrived: dict[At, dict[At, int]] = field(default_factory=dict)
    """By sender: the receivers, and how many probes they got."""
    _heard: dict[At, set[At]] = field(default_factory=dict)
    """By receiver: the senders."""

    def see(self, sender: At, receiver: At) -> None:
        """Take a probe that has arrived."""
        receivers = self._arrived.setdefault(sender, {})
        if receiver in receivers or len(receivers) < _MOST_RECEIVERS:
            receivers[receiver] = min(receivers.get(receiver, 0) + 1, CONFIRMED)
            self._heard.setdefault(receiver, set()).add(sender)

    def forget(self, at: At) -> None:
        """Forget the cable at a port."""
        for receiver in self._arrived.pop(at, {}):
            self._heard[receiver].discard(at)
        for sender in self._heard.pop(at, set()):
            self._arrived[sender].pop(at)

    def is_at(self, at: At) -> bool:
        """Whether probes of a port arrive somewhere, or it gets probes."""
        return bool(self._arrived.get(at) or self._heard.get(at))

    def links(self) -> Iterator[tuple[At, At]]:
        """Yield the cables between two switches that work in both directions, each once."""
        for sender, receivers in sorted(self._arrived.items()):
            if len(receivers) != 1:
                continue
            ((receiver, count),) = receivers.items()
            back = self._arrived.get(receiver, {})
            both = count >= CONFIRMED and back == {sender: CONFIRMED}
            if both and sender < receiver and sender[0] != receiver[0]:
                yield sender, receiver

    def lines(self, text: Callable[[At], str]) -> Iterator[str]:
        """Yield one line for each cable that is no link; ``text`` describes a port."""
        for sender, receivers in sorted(self._arrived.items()):
            if len(receivers) > 1:
                ports = " and ".join(map(text, sorted(receivers)))
                yield (
                    f"probes of {text(sender)} arrive at {ports}: it is no cable between two"
                    " switches"
                )
            for receiver in list(receivers)[: len(receivers) == 1]:
                if line := self._odd(sender, receiver, text):
                    yield line

    def _odd(self, sender: At, receiver: At, text: Callable[[At], str]) -> str | None:
        if receiver[0] == sender[0]:
            return f"{text(sender)} is connected to {text(receiver)} of the same switch"
        back = self._arrived.get(receiver)
        if not back:
            return f"probes of {text(sender)} arrive at {text(receiver)}, but none come back"
        if sender not in back:
            return (
                f"probes of {text(sender)} arrive at {text(receiver)}, whose own arrive elsewhere"
            )
        return None
