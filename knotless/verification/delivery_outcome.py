"""The delivery of packets while a part of a fabric has failed and rules stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from knotless.verification.failover_packets import Hops, Packet, Packets, Variant


class _Outcome(NamedTuple):
    """The number of copies that arrive; ``bad``: some packet loops or reaches another host."""

    copies: int
    bad: bool


_LOOP = _Outcome(0, bad=True)
_ARRIVES = _Outcome(1, bad=False)


class DeliveryOutcome:
    """The outcomes of packets without some channels and switches, which are ``dead``.

    ``variants`` are the rules of those switches that do something else now.
    """

    def __init__(
        self,
        packets: Packets,
        dead_channels: Collection[int],
        dead_switches: Collection[int],
        variants: Mapping[int, Variant],
    ) -> None:
        self._packets, self._variants = packets, variants
        self._dead_channels, self._dead_switches = dead_channels, dead_switches
        self._outcomes: dict[Packet, _Outcome] = {}

    def delivers(self, start: Packet) -> bool:
        """Tell whether exactly one copy of a packet arrives, and none elsewhere."""
        return self._outcome(start) == _ARRIVES

    def _outcome(self, packet: Packet) -> _Outcome:
        outcomes, passed = self._outcomes, []
        outcome = outcomes.get(packet)
        while outcome is None:
            outcomes[packet] = _LOOP  # as long as it is not known
            passed.append(packet)
            hops = self._hops(packet)
            if len(hops) == 1 and hops[0].channel < self._packets.channels:
                packet = hops[0]
                outcome = outcomes.get(packet)
            else:
                outcome = self._of_copies(hops)
        for packet in passed:
            outcomes[packet] = outcome
        return outcome

    def _of_copies(self, hops: Hops) -> _Outcome:
        copies, bad = 0, False
        for hop in hops:
            if hop.channel < self._packets.channels:
                one = self._outcome(hop)
            else:
                one = _ARRIVES if self._packets.arrives(hop) else _LOOP
            copies, bad = copies + one.copies, bad or one.bad
        return _Outcome(copies, bad)

    def _hops(self, packet: Packet) -> Hops:
        switch = self._packets.switch_of(packet)
        if switch in self._dead_switches:
            return ()
        hops = self._packets.hops(packet, self._variants.get(switch))
        return tuple(hop for hop in hops if hop.channel not in self._dead_channels)
