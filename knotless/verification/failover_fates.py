"""Whether packets arrive while a part of a fabric has failed and rules stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from knotless.verification.failover_packets import Hops, Packet, Packets, Variant


class _Fate(NamedTuple):
    """How many copies arrive, and whether some packet loops or reaches another host."""

    copies: int
    bad: bool


_LOOP = _Fate(0, bad=True)
_ARRIVES = _Fate(1, bad=False)


class Fates:
    """The fates of packets without the ``dead`` channels and the switches that are ``gone``.

    ``variants`` are the rules of those switches that do something else now.
    """

    def __init__(
        self,
        packets: Packets,
        dead: Collection[int],
        gone: Collection[int],
        variants: Mapping[int, Variant],
    ) -> None:
        self._packets, self._dead, self._gone = packets, dead, gone
        self._variants = variants
        self._known: dict[Packet, _Fate] = {}

    def delivers(self, start: Packet) -> bool:
        """Tell whether exactly one copy of a packet arrives, and none elsewhere."""
        return self._fate(start) == _ARRIVES

    def _fate(self, packet: Packet) -> _Fate:
        known, passed = self._known, []
        fate = known.get(packet)
        while fate is None:
            known[packet] = _LOOP  # as long as it is not known
            passed.append(packet)
            hops = self._hops(packet)
            if len(hops) == 1 and hops[0].link < self._packets.channels:
                packet = hops[0]
                fate = known.get(packet)
            else:
                fate = self._of_copies(hops)
        for packet in passed:
            known[packet] = fate
        return fate

    def _of_copies(self, hops: Hops) -> _Fate:
        copies, bad = 0, False
        for hop in hops:
            if hop.link < self._packets.channels:
                one = self._fate(hop)
            else:
                one = _ARRIVES if self._packets.arrives(hop) else _LOOP
            copies, bad = copies + one.copies, bad or one.bad
        return _Fate(copies, bad)

    def _hops(self, packet: Packet) -> Hops:
        at = self._packets.switch_of(packet)
        if at in self._gone:
            return ()
        hops = self._packets.hops(packet, self._variants.get(at))
        return tuple(hop for hop in hops if hop.link not in self._dead)
