"""When the packets of older rules have left the fabric, as counters of ports show. Pure.

A fabric is drained after as many rounds as the longest chain of channel dependencies has channels
(docs/decisions/route-changes.md). In a round, each channel delivers all frames that were sent on it
before the round began. If channels keep the order of frames, this is so when the receiving port
has counted as many frames as the sending port had at the beginning. If they do not, because frames
of several priorities overtake each other, the channel must have been empty for a moment.

Probes may have a priority of their own and overtake all others. So as many frames more must have
arrived as probes can have left after the beginning.

The ports are read one after the other. A frame can leave a channel that is read late and enter one
that was read before, so a round begins with counters that were all read after the last one ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from knotless.topologies.fabric import Link

Port = tuple[str, int]
Channel = tuple[Port, Port]
"""The sending and the receiving port."""
Counters = Mapping[Port, tuple[int, int]]
"""Of each port of a switch: frames received and sent."""
Probed = Mapping[Port, tuple[int, int]]
"""By sending port: probes that it was given so far, and those of them that may not have left."""
NO_PROBES: Probed = {}


def channels_between(links: Sequence[Link]) -> list[Channel]:
    """Return both channels of each link."""
    ends = [((link.a, link.a_port), (link.b, link.b_port)) for link in links]
    return [*ends, *((b, a) for a, b in ends)]


class Draining:
    """Rounds in which all ``channels`` deliver what they hold.

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

    @property
    def late(self) -> list[Channel]:
        """The channels for which the current round waits."""
        return list(self._late)

    def counted_in(self, counters: Counters) -> bool:
        """Whether the counters of no port are missing: without these nothing is known."""
        return all(a in counters and b in counters for a, b in self._channels)

    def see(
        self, counters: Counters, earlier: Probed = NO_PROBES, later: Probed = NO_PROBES
    ) -> bool:
        """Take counters of all ports, read since the last call; return whether all is done.

        ``earlier`` and ``later`` are the probes before the counters were read and after that.
        """
        before, self._before = self._before, counters
        if before is None or not self._late:
            self._late = {}
            for channel in self._channels:
                given, under_way = earlier.get(channel[0], (0, 0))
                self._late[channel] = counters[channel[0]][1] + under_way - given
            return not self._late
        self._late = {
            channel: sent
            for channel, sent in self._late.items()
            if not self._has_delivered(channel, sent, before, counters, later)
        }
        if not self._late:
            self._left -= 1
        return not self._left

    def _has_delivered(
        self, channel: Channel, sent: int, before: Counters, now: Counters, probed: Probed
    ) -> bool:
        a, b = channel
        lost = self._lost.get(channel, 0)
        given, _ = probed.get(a, (0, 0))
        if self._keeps_order and now[b][0] + lost >= sent + given:
            return True
        # What had arrived earlier is all that has been sent until later: nothing was under way.
        return before[b][0] + lost >= now[a][1]


class PriorityDraining:
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
