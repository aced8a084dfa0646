"""Sets of next hops while some channels have failed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.graphs.next_hop_sets import NextHopSets
from knotless.routing.graphs.state_graph import Mask

Places = NDArray[np.int64]


class _Entries(NamedTuple):
    """Every entry of sets: of which set it is a channel, and the set at which that channel ends.

    Sets are numbered by destination switch, then by switch.
    """

    number: Places
    onward: Places
    is_last: Mask
    """Whether the channel ends at the destination."""


def _entries(sets: NextHopSets, channels: Channels) -> _Entries:
    count = len(channels.names)
    number = np.repeat(np.arange(count * count, dtype=np.int64), sets.sizes.reshape(-1))
    to, head = number // count, channels.head[sets.channels].astype(np.int64)
    return _Entries(number, to * count + head, head == to)


def without_channels(sets: NextHopSets, channels: Channels, failed: Mask) -> NextHopSets:
    """Return the sets without failed channels, and without those that lead to empty sets only.

    Every packet that takes the channels left arrives. ``failed`` has the shape (channels,).
    """
    entries, shape = _entries(sets, channels), sets.ends.shape
    kept = ~failed[sets.channels]
    while True:
        sizes = np.bincount(entries.number[kept], minlength=shape[0] * shape[1])
        leads_on = kept & (entries.is_last | (sizes[entries.onward] > 0))
        if np.array_equal(leads_on, kept):
            break
        kept = leads_on
    return NextHopSets(np.cumsum(sizes).astype(np.uint32).reshape(shape), sets.channels[kept])


def path_lengths(sets: NextHopSets, channels: Channels) -> Places:
    """Return the channels of the paths from each switch, shape (destination switches, switches).

    It is 0 at the destination and where there is no path. All paths between two switches must be
    equally long, as those of engines are.
    """
    count = len(channels.names)
    switches = np.arange(count)
    lengths = np.zeros((count, count), dtype=np.int64)
    current, first = np.broadcast_to(switches, (count, count)).copy(), sets.firsts
    while (moving := (sets.sizes > 0)[switches[:, None], current]).any():
        to = np.nonzero(moving)[0]
        current[moving] = channels.head[sets.channels[first[to, current[moving]]]]
        lengths += moving
    return lengths


def changed_paths(old: NextHopSets, new: NextHopSets, channels: Channels) -> Mask:
    """Return where packets have other paths, shape (destination switches, switches)."""
    count = len(channels.names)
    every = [_entries(sets, channels) for sets in (old, new)]
    had, have = (
        set(zip(entries.number.tolist(), sets.channels.tolist(), strict=True))
        for entries, sets in zip(every, (old, new), strict=True)
    )
    changed = np.zeros(count * count, dtype=np.bool_)
    changed[[pair for pair, _ in had ^ have]] = True
    while True:
        before = int(changed.sum())
        for entries in every:
            changed[entries.number[changed[entries.onward]]] = True
        if int(changed.sum()) == before:
            return changed.reshape(count, count)


def set_dependencies(sets: NextHopSets, channels: Channels) -> tuple[Ints, Ints]:
    """Return each pair of channels of which packets can take one after the other, (from, to)."""
    entries, sizes, firsts = _entries(sets, channels), sets.sizes.reshape(-1), sets.firsts
    more = sizes[entries.onward]
    more[entries.is_last] = 0
    place = np.arange(int(more.sum())) - np.repeat(np.cumsum(more) - more, more)
    after = sets.channels[np.repeat(firsts.reshape(-1)[entries.onward], more) + place]
    pairs = np.unique(np.stack([np.repeat(sets.channels, more), after]), axis=1)
    return pairs[0].astype(np.int32), pairs[1].astype(np.int32)
