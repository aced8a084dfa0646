"""Settings of the ports of a fabric, and by which frames of lossless priorities can be lost.

A frame is lost if what still arrives after a pause exceeds the headroom, if the ends of a link do
not agree (:mod:`knotless.base.link_ends`), or if an egress queue or pool holds less than ingress
buffers admit.

References
----------
``Buffer::headroom_needed`` in core/switch-model/src/config.rs; IEEE 802.1Q-2018, Annex N.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from knotless._core import simulator as core
from knotless.base.errors import SwitchSettingsError
from knotless.base.flow_control import FlowControl
from knotless.base.link_ends import LinkEnd, disagreements
from knotless.base.model_limits import PRIORITIES
from knotless.base.printable import listed
from knotless.topologies.fabric import Fabric
from knotless.verification.pool_waits import Share

if TYPE_CHECKING:
    from knotless.base.switch_settings import (
        EgressGroup,
        IngressGroup,
        PauseFrames,
        PortSettings,
        SwitchFile,
        SwitchSettings,
    )


QUANTUM_BYTES = 64
"""Pauses are given in times of 512 bits, and repeated after half of them."""
End = tuple[str, int]
Needs = Mapping[End, int]
"""The headroom that each port needs, in bytes; ports whose need is not known are absent."""
EVERY = frozenset(range(PRIORITIES))
"""All priorities."""


@dataclass(frozen=True)
class SwitchEnds:
    """The ports of a fabric with their settings, under a flow control.

    Only PFC knows priorities that do not pause; links that PAUSE stop all. ``used`` are the
    priorities that packets have.
    """

    fabric: Fabric
    file: SwitchFile
    flow_control: FlowControl
    used: frozenset[int] = EVERY

    @cached_property
    def ports(self) -> Mapping[tuple[str, int], PortSettings]:
        """The settings of each port with a cable, by switch and number."""
        return {
            (name, port): self.switch(name).of_port(port)
            for name, port in sorted(self._ends(), key=lambda end: (self._place[end[0]], end[1]))
        }

    @cached_property
    def by_switch(self) -> Mapping[str, list[tuple[str, int]]]:
        """The ports of each switch, in order."""
        ends: dict[str, list[tuple[str, int]]] = {}
        for end in self.ports:
            ends.setdefault(end[0], []).append(end)
        return ends

    def switch(self, name: str) -> SwitchSettings:
        """Return the settings of a switch."""
        return self.file.of_switch(name)

    def lossless(self, end: tuple[str, int]) -> frozenset[int]:
        """Return the priorities for which a port sends and obeys pauses: by default, all."""
        control = self.flow_control
        links = control.host_links if end in self._of_hosts else control.switch_links
        chosen = self.ports[end].lossless
        if not links.pauses:
            return frozenset()
        return EVERY if chosen is None or links.by_channel else frozenset(chosen)

    def filled(self, end: tuple[str, int]) -> frozenset[int]:
        """Return the lossless priorities whose buffers can fill at a port.

        Links that PAUSE have one buffer for all priorities. Of ports for which all priorities are
        lossless since nothing is said, those count that packets have.
        """
        lossless = self.lossless(end)
        if lossless == EVERY and self.flow_control.switch_links.by_channel:
            return frozenset({0})
        return lossless if self.ports[end].lossless is not None else lossless & self.used

    def ingress(self, end: tuple[str, int]) -> Iterator[tuple[IngressGroup, list[int]]]:
        """Yield the ingress groups of a port, each with those of its priorities that fill."""
        for group in self.ports[end].ingress or ():
            yield group, sorted({*group.priorities} & self.filled(end))

    def egress(self, end: tuple[str, int]) -> Iterator[tuple[EgressGroup, list[int]]]:
        """Yield the egress groups of a port, each with those of its priorities that fill."""
        for group in self.ports[end].egress or ():
            yield group, sorted({*group.priorities} & self.filled(end))

    def shares(self, longest_frame_bytes: int) -> dict[tuple[int, int], dict[int, Share]]:
        """Return the pool of each ingress buffer that has one, and whether it has a reserve."""
        return {
            (self._place[end[0]], end[1]): {
                priority: Share(group.pool, group.reserved_bytes >= longest_frame_bytes)
                for group in settings.ingress or ()
                for priority in group.priorities
                if group.pool is not None
            }
            for end, settings in self.ports.items()
        }

    def source_pools(self) -> dict[int, frozenset[str]]:
        """Return by switch (its index) the pools that frames of its own hosts may hold."""
        pools: dict[int, set[str]] = {}
        for host in self.fabric.hosts:
            for group in self.ports[host.switch, host.port].ingress or ():
                if group.pool is not None:
                    pools.setdefault(self._place[host.switch], set()).add(group.pool)
        return {switch: frozenset(names) for switch, names in pools.items()}

    def refuse_unknown_names(self) -> None:
        """Raise SwitchSettingsError if the file names a switch or port that does not exist."""
        for name in self.file.switches:
            if name not in self._place:
                names = listed(self._place, 3)
                raise SwitchSettingsError(
                    f"switches.{name[:40]}: there is no such switch in {self.fabric.name}, which"
                    f" has {names}"
                )
        numbers = {
            name: {port for _, port in self.by_switch.get(name, ())} for name in self.file.switches
        }
        numbers[""] = {port for _, port in self.ports}
        for name, settings in [("", self.file), *self.file.switches.items()]:
            for port in settings.ports:
                if port not in map(str, numbers[name]):
                    where = f"switches.{name}.ports.{port[:40]}" if name else f"ports.{port[:40]}"
                    has = f"{name} has" if name else f"switches of {self.fabric.name} have"
                    ports = listed(map(str, sorted(numbers[name])), 8)
                    raise SwitchSettingsError(f"{where}: {has} ports {ports}")

    @cached_property
    def _of_hosts(self) -> frozenset[tuple[str, int]]:
        return frozenset((host.switch, host.port) for host in self.fabric.hosts)

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return self.fabric.switch_index

    def _ends(self) -> Iterator[tuple[str, int]]:
        for host in self.fabric.hosts:
            yield host.switch, host.port
        for link in self.fabric.links:
            yield link.a, link.a_port
            yield link.b, link.b_port


def losses_of(ends: SwitchEnds, longest_frame_bytes: int) -> list[str]:
    """Return a line for each mistake by which lossless frames can be lost, with what to change."""
    needs = needs_of(ends, longest_frame_bytes)
    return [
        *_small_headroom(ends, needs),
        *_headroom_pools(ends, needs),
        *_short_pauses(ends, longest_frame_bytes),
        *_link_ends(ends),
        *_lossy_egress(ends, with_headroom=True),
    ]


def losses_of_tables(ends: SwitchEnds, needs: Needs) -> list[str]:
    """Return the same for switches whose tables were read, which judge their own headroom.

    Whether the size of a pool includes its shared headroom depends on the chip, so that this does
    not count as admitted.
    """
    return [*_headroom_pools(ends, needs), *_lossy_egress(ends, with_headroom=False)]


def needs_of(ends: SwitchEnds, longest_frame_bytes: int) -> dict[End, int]:
    """Return the headroom that each port needs for its link.

    A pause frame that takes its place on the wire waits for the frame before it, and the sender
    takes time to respond.
    """
    needs: dict[End, int] = {}
    lines = [(h.switch, h.port, h.rate_mbps, h.delay_us) for h in ends.fabric.hosts]
    for link in ends.fabric.links:
        lines += [
            (link.a, link.a_port, link.rate_mbps, link.delay_us),
            (link.b, link.b_port, link.rate_mbps, link.delay_us),
        ]
    for name, port, rate_mbps, delay_us in lines:
        frames = ends.switch(name).pause_frames
        rate_bps, delay_ps = round(rate_mbps * 1e6), round(delay_us * 1e6)
        needed = core.headroom_bytes(rate_bps, delay_ps, longest_frame_bytes)
        needs[name, port] = needed + _of_pause_frames(frames, rate_mbps, longest_frame_bytes)
    return needs


def _of_pause_frames(frames: PauseFrames | None, rate_mbps: float, longest: int) -> int:
    if frames is None:
        return 0
    response_ps = round(frames.response_us * 1e6)
    return core.pause_frame_headroom_bytes(round(rate_mbps * 1e6), response_ps, longest)


def _small_headroom(ends: SwitchEnds, needs: Needs) -> Iterator[str]:
    lines: dict[str, list[str]] = {}
    for end in ends.ports:
        for group, priorities in ends.ingress(end):
            given, needed = group.headroom_bytes, needs.get(end)
            if priorities and given is not None and needed is not None and given < needed:
                what = (
                    f"{_priorities(priorities)}: headroom_bytes {given} of the ingress buffer, but"
                    f" its link needs {needed}: frames can be lost; set it to {needed} or more"
                )
                lines.setdefault(what, []).append(_end(end))
    return _joined(lines)


def _headroom_pools(ends: SwitchEnds, needs: Needs) -> Iterator[str]:
    """Yield the pools whose shared headroom is less than what their buffers can need at once."""
    lines: dict[str, list[str]] = {}
    for name, of_switch in ends.by_switch.items():
        for pool, row in ends.switch(name).pools.items():
            needed = sorted(
                needs[end]
                for end in of_switch
                if end in needs
                for group, priorities in ends.ingress(end)
                if group.pool == pool
                for _ in priorities
            )
            if row.headroom_bytes is None or sum(needed) <= row.headroom_bytes:
                continue
            fit = int(np.searchsorted(np.cumsum(needed[::-1]), row.headroom_bytes, side="right"))
            what = (
                f"pool {pool}: headroom_bytes {row.headroom_bytes} are enough for {fit} of its"
                f" {len(needed)} lossless ingress buffers (port and priority) at once: frames can"
                f" be lost; all need {sum(needed)}"
            )
            lines.setdefault(what, []).append(name)
    return _joined(lines)


def _short_pauses(ends: SwitchEnds, longest_frame_bytes: int) -> Iterator[str]:
    """Yield the quanta that can end while the frame that repeats the pause waits for another."""
    needed = core.wire_bytes(longest_frame_bytes) // (QUANTUM_BYTES // 2) + 1
    lines: dict[str, list[str]] = {}
    for name in ends.by_switch:
        frames = ends.switch(name).pause_frames
        pauses = any(ends.lossless(end) for end in ends.by_switch[name])
        if frames is not None and pauses and frames.quanta < needed:
            what = (
                f"pause_frames: quanta {frames.quanta} can end before the pause is repeated: frames"
                f" can be lost; set it to {needed} or more"
            )
            lines.setdefault(what, []).append(name)
    return _joined(lines)


def _link_ends(ends: SwitchEnds) -> Iterator[str]:
    for link in ends.fabric.links:
        a, b = (_link_end(ends, end) for end in ((link.a, link.a_port), (link.b, link.b_port)))
        yield from (one.text for one in disagreements(a, b))


def _link_end(ends: SwitchEnds, end: End) -> LinkEnd:
    link, lossless = ends.ports[end].link, ends.lossless(end)
    return LinkEnd(
        _end(end), pauses=lossless, obeys=lossless, **({} if link is None else link.model_dump())
    )


def _lossy_egress(ends: SwitchEnds, *, with_headroom: bool) -> Iterator[str]:
    """Yield the egress queues and pools that can drop what ingress buffers have admitted."""
    by_priority: dict[tuple[str, int], int] = {}
    queues: dict[str, list[str]] = {}
    of_pool: dict[tuple[str, str], set[int]] = {}
    for end in ends.ports:
        for group, priorities in ends.egress(end):
            limit = _limit(group, ends.switch(end[0]))
            if group.pool is not None and priorities:
                of_pool.setdefault((end[0], group.pool), set()).update(priorities)
            for priority in priorities if limit is not None else ():
                key = end[0], priority
                if key not in by_priority:
                    by_priority[key] = _admitted(ends, end[0], {priority}, with_headroom)
                if limit is not None and limit < by_priority[key]:
                    what = (
                        f"priority {priority}: an egress queue holds at most {limit} bytes"
                        f" ({_bound(group)}), but ingress buffers of the switch admit up to"
                        f" {by_priority[key]} of this lossless priority: frames can be dropped;"
                        " let it hold as much"
                    )
                    queues.setdefault(what, []).append(_end(end))
    yield from _joined(queues)
    for (switch, name), used in of_pool.items():
        size, most = (
            ends.switch(switch).pools[name].bytes,
            _admitted(ends, switch, used, with_headroom),
        )
        if size < most and not any(by_priority[switch, priority] > size for priority in used):
            yield (
                f"{switch}: egress pool {name} holds {size} bytes of {_priorities(sorted(used))},"
                f" but ingress buffers admit up to {most}: frames can be dropped; let it hold as"
                " much"
            )


def _limit(group: EgressGroup, settings: SwitchSettings) -> int | None:
    """Return the most bytes of an egress queue when it is alone; None: no limit is given."""
    pool = None if group.pool is None else settings.pools[group.pool].bytes
    if pool is None:
        return None if group.limit_bytes is None else group.reserved_bytes + group.limit_bytes
    if group.alpha is not None:
        return group.reserved_bytes + int(pool * group.alpha / (1 + group.alpha))
    limit = pool if group.limit_bytes is None else min(pool, group.limit_bytes)
    return group.reserved_bytes + limit


def _bound(group: EgressGroup) -> str:
    bound = "the whole pool"
    if group.alpha is not None:
        bound = f"alpha {group.alpha:g}"
    elif group.limit_bytes is not None:
        bound = f"limit_bytes {group.limit_bytes}"
    return bound if group.pool is None else f"pool {group.pool}, {bound}"


def _admitted(ends: SwitchEnds, switch: str, wanted: AbstractSet[int], with_headroom: bool) -> int:
    """Return the most bytes of lossless priorities that all ingress buffers of a switch hold.

    Buffers without a bound of their own and without a pool count with what is reserved for them.
    """
    shared: dict[str, list[tuple[IngressGroup, int]]] = {}
    total = 0
    for end in ends.by_switch[switch]:
        for group, priorities in ends.ingress(end):
            times = len(wanted & {*priorities})
            own = group.headroom_bytes or 0
            total += times * group.reserved_bytes
            if group.pool is None:
                total += times * ((group.limit_bytes or 0) + own)
            elif times:
                shared.setdefault(group.pool, []).append((group, times))
    for name, groups in shared.items():
        pool = ends.switch(switch).pools[name]
        total += min(pool.bytes, sum(times * _share(group, pool.bytes) for group, times in groups))
        if with_headroom:
            own = sum(times * (group.headroom_bytes or 0) for group, times in groups)
            total += own if pool.headroom_bytes is None else min(own, pool.headroom_bytes)
    return total


def _share(group: IngressGroup, pool_bytes: int) -> int:
    """Return the most that one ingress buffer takes of a pool."""
    if group.alpha is not None:
        return int(pool_bytes * group.alpha / (1 + group.alpha))
    return pool_bytes if group.limit_bytes is None else min(pool_bytes, group.limit_bytes)


def _priorities(priorities: Sequence[int]) -> str:
    plural = "priorities" if len(priorities) > 1 else "priority"
    return f"{plural} {', '.join(map(str, priorities))}"


def _end(end: End) -> str:
    return f"{end[0]}:{end[1]}"


def _joined(ends: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield each text with the ports that it is about."""
    for text, names in ends.items():
        yield f"{listed(names, 1)}: {text}"
