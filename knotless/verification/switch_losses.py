"""Settings of switches by which frames of lossless priorities can be lost.

A frame is lost if what still arrives after a pause exceeds the headroom, if one end of a link
pauses a priority and the other does not obey, or if an egress queue or pool holds less than ingress
buffers admit.

References
----------
``Buffer::headroom_needed`` in core/switch-model/src/config.rs; IEEE 802.1Q-2018, Annex N.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from knotless._core import simulator as core
from knotless.base.printable import listed
from knotless.base.switch_settings import EgressGroup, IngressGroup, PauseFrames, SwitchSettings
from knotless.verification.switch_ends import SwitchEnds

QUANTUM_BYTES = 64
"""Pauses are given in times of 512 bits, and repeated after half of them."""
End = tuple[str, int]
Needs = Mapping[End, int]
"""The headroom that each port needs, in bytes; ports whose need is not known are absent."""


def losses_of(ends: SwitchEnds, longest_frame_bytes: int) -> list[str]:
    """Return a line for each mistake by which lossless frames can be lost, with what to change."""
    needs = needs_of(ends, longest_frame_bytes)
    return [
        *_small_headroom(ends, needs),
        *_headroom_pools(ends, needs),
        *_short_pauses(ends, longest_frame_bytes),
        *_one_end_only(ends),
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


def _one_end_only(ends: SwitchEnds) -> Iterator[str]:
    for link in ends.fabric.links:
        a, b = (link.a, link.a_port), (link.b, link.b_port)
        for one, other in ((a, b), (b, a)):
            only = sorted(ends.lossless(one) - ends.lossless(other))
            if only:
                yield (
                    f"{_end(one)} has {_priorities(only)} lossless, but {_end(other)} at the other"
                    " end of the link has not: frames can be lost; add it to, or remove it from,"
                    " lossless of one of them"
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
