"""How the controller sees that the packets of older rules have left the fabric.

Switches count frames of a port by number only, so their counters must be read until they prove it
(:class:`CountedDrain`). The emulator of a fabric of ours counts every priority, as queue counters
of hardware do, and all channels at one moment (:class:`EmulatedDrain`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

from knotless.controller.draining import Counters, Draining, PriorityDraining, channels_between
from knotless.controller.emulator import EmulatorError, ask
from knotless.controller.losses import Losses
from knotless.controller.status import Status
from knotless.controller.wiring import port_text
from knotless.topologies.failures import Failures, usable

_SNAPSHOT_INTERVAL_S = 0.005
"""A round needs at least as long as a frame needs for a link."""


_SHOWN = 3


def _not_left(ports: Sequence[str]) -> str | None:
    if not ports:
        return None
    return (
        f"packets of older rules have not left {', '.join(ports[:_SHOWN])}: a host may pause its"
        " link, or load never lets the link become empty"
    )


class Drain(Protocol):
    """Waits for the packets of one step."""

    @property
    def problem(self) -> str | None:
        """What it waits for, one line; None: nothing is known yet."""

    @property
    def pause_s(self) -> float:
        """How long to wait until the next look."""

    def look(self) -> bool:
        """Look at the counters; return whether all packets of older rules have left."""


def has_drained(drain: Drain, is_current: Callable[[], bool]) -> bool:
    """Look; return whether all packets have left and the step is still the one that waits.

    Another step can begin while switches or the emulator are asked.
    """
    return is_current() and drain.look() and is_current()


class CountedDrain:
    """By the port counters of switches; these are read every ``interval_s``.

    What is on a link that fails meanwhile is lost, and is not waited for. When the link is back it
    begins again, and once more when the lost frames have been counted.
    """

    def __init__(
        self, status: Status, read: Callable[[], Counters], losses: Losses, interval_s: float
    ) -> None:
        self._status, self._read, self._losses = status, read, losses
        self._interval_s = interval_s
        self._begun_for: tuple[Failures, int] | None = None
        """The failures, and how often lost frames had been counted."""
        self._draining: Draining | None = None

    @property
    def problem(self) -> str | None:
        """See :class:`Drain`."""
        late = self._draining.late if self._draining else []
        return _not_left([port_text(sender) for sender, _ in late])

    @property
    def pause_s(self) -> float:
        """See :class:`Drain`."""
        # A round that is done is followed by the next one at once.
        return self._interval_s if self._draining is None or self._draining.late else 0

    def look(self) -> bool:
        """See :class:`Drain`."""
        transition, observed = self._status.transition, self._status.observed
        number, earlier = transition.number, observed.probed()
        counters = self._read()
        if transition.number != number:
            return False
        known = transition.existing.failures, self._losses.times
        if self._draining is None or self._begun_for != known:
            self._begun_for = known
            self._draining = self._begun(transition.existing.failures, counters)
        if self._draining is None or not self._draining.counted_in(counters):
            return False
        return self._draining.see(counters, earlier, observed.probed())

    def _begun(self, failures: Failures, counters: Counters) -> Draining | None:
        """Begin to wait for all channels that have not failed; None: counters are missing."""
        transition = self._status.transition
        channels = channels_between(usable(transition.existing.fabric, failures).links)
        if any(port not in counters for port in chain.from_iterable(channels)):
            return None
        rounds, keeps_order = transition.drain_rounds()
        lost = {channel: self._losses.of(channel, counters) for channel in channels}
        return Draining(channels, rounds, lost, keeps_order=keeps_order)


class EmulatedDrain:
    """By what the emulator at this control socket says is under way."""

    pause_s = _SNAPSHOT_INTERVAL_S

    def __init__(self, status: Status, emulator: Path) -> None:
        self._emulator = emulator
        rounds, _ = status.transition.drain_rounds()
        # Packets that old rules have let in can still be on the lines of hosts.
        hosts = status.transition.existing.fabric.hosts
        self._draining = PriorityDraining(rounds + 1, [host.name for host in hosts])

    @property
    def problem(self) -> str | None:
        """See :class:`Drain`."""
        return _not_left(sorted({channel for channel, _ in self._draining.late}))

    def look(self) -> bool:
        """See :class:`Drain`."""
        try:
            channels = ask(self._emulator, "under-way")["channels"]
            counted = {
                (channel, priority): (int(arrived), int(coming))
                for channel, priorities in channels.items()
                for priority, (arrived, coming) in priorities.items()
            }
        except (EmulatorError, AttributeError, KeyError, TypeError, ValueError):
            return False
        return self._draining.see(counted)
