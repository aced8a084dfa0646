"""When the packets of older rules have left the fabric, as counters of ports show. Pure.

A fabric is drained after as many rounds as the longest chain of channel dependencies has channels
(docs/decisions/route-changes.md). In a round, each channel delivers all frames that were sent on it
before the round began. If channels keep the order of frames, this is so when the receiving port
has counted as many frames as the sending port had at the beginning. If they do not, because frames
of several priorities overtake each other, the channel must have been empty for a moment.

The ports are read one after the other. A frame can leave a channel that is read late and enter one
that was read before, so a round begins with counters that were all read after the last one ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topologies.fabric import Link

Port = tuple[str, int]
Counters = Mapping[Port, tuple[int, int]]
"""Of each port of a switch: frames received and sent."""


def channels_between(links: Sequence[Link]) -> list[tuple[Port, Port]]:
    """Return the sending and the receiving port of both channels of each link."""
    ends = [((link.a, link.a_port), (link.b, link.b_port)) for link in links]
    return [*ends, *((b, a) for a, b in ends)]


class Draining:
    """Rounds in which all ``channels`` (sending port, receiving port) deliver what they hold.

    ``lost`` are the frames of channels that never arrived, such as those on a link that was cut.
    """

    def __init__(
        self,
        channels: Sequence[tuple[Port, Port]],
        rounds: int,
        lost: Mapping[tuple[Port, Port], int],
        *,
        keeps_order: bool,
    ) -> None:
        self._channels, self._lost, self._keeps_order = channels, lost, keeps_order
        self._left = rounds
        self._late: dict[tuple[Port, Port], int] = {}
        """Channels that have not delivered in this round -> frames that were sent before it."""
        self._before: Counters | None = None

    @property
    def late(self) -> list[tuple[Port, Port]]:
        """The channels for which the current round waits."""
        return list(self._late)

    def see(self, counters: Counters) -> bool:
        """Take counters of all ports, read since the last call; return whether all is done."""
        before, self._before = self._before, counters
        if before is None or not self._late:
            self._late = {channel: counters[channel[0]][1] for channel in self._channels}
            return not self._late
        self._late = {
            channel: sent
            for channel, sent in self._late.items()
            if not self._has_delivered(channel, sent, before, counters)
        }
        if not self._late:
            self._left -= 1
        return not self._left

    def _has_delivered(
        self, channel: tuple[Port, Port], sent: int, before: Counters, now: Counters
    ) -> bool:
        a, b = channel
        lost = self._lost.get(channel, 0)
        if self._keeps_order:
            return now[b][0] + lost >= sent
        # What had arrived earlier is all that has been sent until later: nothing was under way.
        return before[b][0] + lost >= now[a][1]
