"""Quiescence: the packets of older rules have left the fabric, so that the next step can begin.

The fabric is quiescent after as many rounds as the longest chain of channel dependencies has
channels (docs/decisions/route-changes.md). In a round, each channel delivers all frames that were
sent on it before the round began. There are two ways to see that:

- Switches count the frames of a port by number only (:class:`CountedRounds`). If channels keep the
  order of frames, a round ends when the receiving port has counted as many frames as the sending
  port had at its beginning, or when a probe has arrived that was sent after it. If they do not,
  because frames of several priorities overtake each other, the channel must have been empty for a
  moment. Probes may have a priority of their own and overtake all others, so as many frames more
  must have arrived as probes can have left after the beginning. The ports are read one after the
  other: a frame can leave a channel that is read late and enter one that was read before, so a
  round begins with counters that were all read after the last one ended.
- The emulator of a fabric of ours counts every priority, as queue counters of hardware do, and all
  channels at one moment (:class:`PriorityRounds`).

Frames that a cut link has lost never arrive. They are counted when the link returns, and kept
(:class:`ChannelLosses`); a probe that has arrived shows that nothing is left whatever was lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from knotless.base.complaints import complaint
from knotless.controller import runtime
from knotless.controller.config import ConfigError
from knotless.controller.emulator import EmulatorError, ask
from knotless.controller.observed import (
    Channel,
    Counters,
    ProbeNumbers,
    ProbesGiven,
    channels_between,
    port_text,
)
from knotless.controller.updates.state import UpdateState
from knotless.topologies.failures import Failures, usable

NO_PROBES: ProbesGiven = {}
_NONE_CROSSED: tuple[int, ProbeNumbers] = (0, {})
_SNAPSHOT_INTERVAL_S = 0.005
"""A round needs at least as long as a frame needs for a link."""
_SHOWN = 3
_MAX_BYTES = 1 << 24
_FILE = TypeAdapter(dict[str, tuple[int, int, int]])
"""By sending and receiving port (``s1:2-s2:3``), the fields of a :class:`Loss`."""


# --- rounds ----------------------------------------------------------------------------------


class CountedRounds:
    """Rounds in which all ``channels`` deliver the frames that they hold, by port counters.

    ``lost`` are the frames of channels that never arrived, such as those on a link that was cut.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        rounds: int,
        lost: Mapping[Channel, int],
        *,
        keeps_order: bool,
    ) -> None:
        self._channels, self._lost, self._keeps_order = channels, lost, keeps_order
        self._left = rounds
        self._late: dict[Channel, int] = {}
        """Channels that have not delivered in this round -> frames that were sent before it, and
        probes that may leave after its beginning, less those that were given before."""
        self._before: Counters | None = None
        self._sent_before = 0
        """The highest number of a probe that may have been sent before this round."""

    @property
    def late(self) -> list[Channel]:
        """The channels for which the current round waits."""
        return list(self._late)

    def counted_in(self, counters: Counters) -> bool:
        """Return whether the counters of no port are missing: without these nothing is known."""
        return all(a in counters and b in counters for a, b in self._channels)

    def see(
        self,
        counters: Counters,
        earlier: ProbesGiven = NO_PROBES,
        later: ProbesGiven = NO_PROBES,
        crossed: tuple[int, ProbeNumbers] = _NONE_CROSSED,
    ) -> bool:
        """Take counters of all ports, read since the last call; return whether all is done.

        ``earlier`` and ``later`` are the probes before the counters were read and after that, if
        they can overtake other frames; ``crossed`` is :meth:`ProbeCounts.probes_crossed` if they
        cannot.
        """
        before, self._before = self._before, counters
        highest, arrived = crossed
        if before is None or not self._late:
            self._late, self._sent_before = {}, highest
            for channel in self._channels:
                given, under_way = earlier.get(channel[0], (0, 0))
                self._late[channel] = counters[channel[0]][1] + under_way - given
            return not self._late
        self._late = {
            channel: sent
            for channel, sent in self._late.items()
            if not (self._keeps_order and arrived.get(channel[0], 0) > self._sent_before)
            and not (
                self._is_counted(channel, highest)
                and self._has_delivered(channel, sent, before, counters, later)
            )
        }
        if not self._late:
            self._left -= 1
        return not self._left

    def _is_counted(self, channel: Channel, highest: int) -> bool:
        """Return whether counters tell what is on a channel: not where probes do it better.

        Frames that a switch has sent to a link that counted as failed, and that had returned, may
        have been counted as lost, and have arrived.
        """
        return not (self._keeps_order and highest and self._lost.get(channel))

    def _has_delivered(
        self, channel: Channel, sent: int, before: Counters, now: Counters, probes: ProbesGiven
    ) -> bool:
        a, b = channel
        lost = self._lost.get(channel, 0)
        given, _ = probes.get(a, (0, 0))
        if self._keeps_order and now[b][0] + lost >= sent + given:
            return True
        # What had arrived earlier is all that has been sent until later: nothing was under way.
        return before[b][0] + lost >= now[a][1]


class PriorityRounds:
    """The same rounds where each priority is counted, and all channels at one moment.

    Frames of one priority keep their order, so a channel has delivered what it held when so many
    frames have arrived as had arrived or were under way, or when nothing is under way. A frame
    that has arrived is on its next channel at the same moment. Frames of other priorities, such as
    probes, are counted apart.

    ``entries`` are the channels from hosts. What comes from them later meets the newer rules, so
    only the first round waits for them: a host that floods its link does not hold up all rounds.
    """

    def __init__(self, rounds: int, entries: Collection[str] = ()) -> None:
        self._left, self._entries = rounds, frozenset(entries)
        self._late: dict[tuple[str, str], int] | None = None

    @property
    def late(self) -> list[tuple[str, str]]:
        """The channels and priorities for which the current round waits."""
        return list(self._late or ())

    def see(self, counted: Mapping[tuple[str, str], tuple[int, int]]) -> bool:
        """Take the frames that have arrived and those under way; return whether all is done."""
        if self._late is not None:
            self._late = {
                channel: wanted
                for channel, wanted in self._late.items()
                if counted.get(channel, (0, 0))[0] < wanted and counted.get(channel, (0, 0))[1]
            }
            if not self._late:
                self._left -= 1
        if not self._late:
            ignored = frozenset[str]() if self._late is None else self._entries
            self._late = {
                channel: arrived + coming
                for channel, (arrived, coming) in counted.items()
                if coming and channel[0] not in ignored
            }
            if not self._late:
                self._left = 0
        return self._left <= 0


# --- waiting for them ------------------------------------------------------------------------


class Quiescence(Protocol):
    """Waits for the packets of one step."""

    @property
    def problem(self) -> str | None:
        """The reason for waiting, one line; None: nothing is known yet."""

    @property
    def pause_s(self) -> float:
        """Time to wait until the next look."""

    def look(self) -> bool:
        """Look at the counters; return whether all packets of older rules have left."""


class ProbeCounts(Protocol):
    """The probes among the frames that are counted."""

    def probes_given(self) -> ProbesGiven:
        """Return the probes that can overtake other frames, which quiescence must not mistake."""

    def probes_crossed(self) -> tuple[int, ProbeNumbers]:
        """Return the highest number of a probe that was sent, and of those that crossed links.

        The latter is by sending port, of the latest probe. Both are for probes that keep the order
        of all other frames.
        """


def is_quiescent(quiescence: Quiescence, is_current: Callable[[], bool]) -> bool:
    """Look; return whether all packets have left and the step is still the one that waits.

    Another step can begin while switches or the emulator are asked.
    """
    return is_current() and quiescence.look() and is_current()


class CountedQuiescence:
    """By the port counters of switches, which ``read`` returns; they are read at an interval.

    What is on a link that fails meanwhile is lost, and is not waited for. When the link is back it
    begins again, and once more when the lost frames have been counted.
    """

    def __init__(
        self,
        update: UpdateState,
        probes: ProbeCounts | None,
        read: Callable[[], Counters],
        losses: ChannelLosses,
        interval_s: float,
    ) -> None:
        self._update, self._probes, self._read = update, probes, read
        self._losses, self._interval_s = losses, interval_s
        self._begun_for: tuple[Failures, int] | None = None
        """The failures, and how often lost frames had been counted."""
        self._rounds: CountedRounds | None = None

    @property
    def problem(self) -> str | None:
        """See :class:`Quiescence`."""
        late = self._rounds.late if self._rounds else []
        return _not_left([port_text(sender) for sender, _ in late])

    @property
    def pause_s(self) -> float:
        """See :class:`Quiescence`."""
        # A round that is done is followed by the next one at once.
        return self._interval_s if self._rounds is None or self._rounds.late else 0

    def look(self) -> bool:
        """See :class:`Quiescence`."""
        number, probes = self._update.progress.number, self._probes
        earlier = probes.probes_given() if probes else NO_PROBES
        counters = self._read()
        if self._update.progress.number != number:
            return False
        failures = self._update.union.failures
        if self._rounds is None or self._begun_for != (failures, self._losses.times):
            self._begun_for = failures, self._losses.times
            self._rounds = self._begun(failures, counters)
        if self._rounds is None or not self._rounds.counted_in(counters):
            return False
        if probes is None:
            return self._rounds.see(counters)
        later, crossed = probes.probes_given(), probes.probes_crossed()
        return self._rounds.see(counters, earlier, later, crossed)

    def _begun(self, failures: Failures, counters: Counters) -> CountedRounds | None:
        """Begin to wait for all channels that have not failed; None: counters are missing."""
        channels = channels_between(usable(self._update.union.fabric, failures).links)
        if any(port not in counters for port in chain.from_iterable(channels)):
            return None
        rounds, keeps_order = self._update.progress.quiescence_rounds()
        lost = {channel: self._losses.frames(channel, counters) for channel in channels}
        return CountedRounds(channels, rounds, lost, keeps_order=keeps_order)


class EmulatedQuiescence:
    """By what the emulator at this control socket says is under way."""

    pause_s = _SNAPSHOT_INTERVAL_S

    def __init__(self, update: UpdateState, emulator: Path) -> None:
        self._emulator = emulator
        rounds, _ = update.progress.quiescence_rounds()
        # Packets that old rules have let in can still be on the lines of hosts.
        hosts = update.union.fabric.hosts
        self._rounds = PriorityRounds(rounds + 1, [host.name for host in hosts])

    @property
    def problem(self) -> str | None:
        """See :class:`Quiescence`."""
        return _not_left(sorted({channel for channel, _ in self._rounds.late}))

    def look(self) -> bool:
        """See :class:`Quiescence`."""
        try:
            channels = ask(self._emulator, "under-way")["channels"]
            counted = {
                (channel, priority): (int(arrived), int(coming))
                for channel, priorities in channels.items()
                for priority, (arrived, coming) in priorities.items()
            }
        except (EmulatorError, AttributeError, KeyError, TypeError, ValueError):
            return False
        return self._rounds.see(counted)


def _not_left(ports: Sequence[str]) -> str | None:
    if not ports:
        return None
    return (
        f"packets of older rules have not left {', '.join(ports[:_SHOWN])}: a host may pause its"
        " link, or load never lets the link become empty"
    )


# --- lost frames -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """Frames that a channel has lost, and the counters of its ports when they were counted."""

    frames: int
    sent: int
    received: int


def count_losses(channels: Iterable[Channel], readings: Sequence[Counters]) -> dict[Channel, Loss]:
    """Return the losses of channels on which nothing but probes is under way.

    Counters that did not change from one reading to the next count all of these.
    """
    losses: dict[Channel, Loss] = {}
    for a, b in channels:
        for before, now in pairwise(readings):
            if not {a, b} <= before.keys() & now.keys():
                continue
            sent, received = now[a][1], before[b][0]
            loss = Loss(sent - received, sent, received)
            other = losses.get((a, b))
            stood = (before[a], before[b]) == (now[a], now[b])
            if other is None or (stood and loss.frames < other.frames):
                losses[a, b] = loss
    return losses


class ChannelLosses:
    """The frames that each channel has lost, so that port counters show what is under way.

    A successor, or a controller that starts again, needs the same numbers: the counters of switches
    go on, but do not tell a frame that was lost on a cut link from one that waits. So they are kept
    in the file ``path``, if there is one. ``times`` is how often frames were counted.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.times = 0
        self._losses: dict[str, Loss] = {}

    @staticmethod
    def beside(state_file: Path | None) -> ChannelLosses:
        """Return those that are kept beside a state file: ``state.json``, ``state-lost.json``."""
        if state_file is None:
            return ChannelLosses()
        return ChannelLosses(state_file.with_stem(f"{state_file.stem}-lost"))

    def read(self) -> None:
        """Take what another controller has counted; raises ConfigError naming the file."""
        text = (
            None if self._path is None else runtime.read_kept(self._path, ConfigError, _MAX_BYTES)
        )
        if text is None:
            return
        try:
            content = _FILE.validate_json(text)
        except ValidationError as error:
            what = f"{self._path}: {complaint(error)}; delete the file to do without"
            raise ConfigError(what) from error
        self._losses = {name: Loss(*fields) for name, fields in content.items()}

    def add(self, losses: Mapping[Channel, Loss]) -> None:
        """Keep these losses in place of what was counted before; raises KnotlessError."""
        self.times += 1
        self._losses.update({_name(channel): loss for channel, loss in losses.items()})
        if losses:
            self.keep()

    def keep(self) -> None:
        """Write the file; raises KnotlessError."""
        if self._path is not None:
            text = json.dumps({name: astuple(loss) for name, loss in self._losses.items()})
            runtime.keep(self._path, text + "\n", ConfigError)

    def frames(self, channel: Channel, counters: Counters) -> int:
        """Return how many frames were lost; 0 if counters have begun again since: a restart."""
        loss, (a, b) = self._losses.get(_name(channel)), channel
        if loss is None or counters[a][1] < loss.sent or counters[b][0] < loss.received:
            return 0
        return loss.frames


def _name(channel: Channel) -> str:
    return "-".join(map(port_text, channel))
