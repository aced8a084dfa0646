"""Max-min fair rates of flows that are under way at the same time.

References
----------
Bertsekas and Gallager, Data Networks, section 6.5.2: the rates of all flows rise together; a
flow stops where one of its channels is full.

"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from routing.graphs.channels import Ints

_SAME = 1e-9
"""Shares that differ by less than this part are one share."""

Rates = NDArray[np.float64]


def fair_rates(hops: Sequence[Ints], capacity: Rates) -> Rates:
    """Return the fair rate of each flow, in the unit of ``capacity``.

    ``hops`` holds one array (flows,) for each hop: the channels that the flows take, or
    ``len(capacity)`` where a path has ended. No path takes a channel twice, and each takes one.

    A channel's share is what its full flows leave of it, divided among the others. In
    each step the channels with the smallest share are full, and their flows have that rate.
    """
    channels = len(capacity)
    paths = np.stack(hops, axis=1)
    members, first = _members(paths, channels)
    left = capacity.astype(np.float64)
    rising = np.diff(first)
    rates = np.full(len(paths), np.nan)
    while rising.any():
        share = np.divide(left, rising, out=np.full(channels, np.inf), where=rising > 0)
        level = share.min()
        full = np.flatnonzero(share <= level * (1 + _SAME))
        stopped = np.unique(_slices(members, first[full], first[full + 1]))
        stopped = stopped[np.isnan(rates[stopped])]
        rates[stopped] = level
        ended = np.bincount(paths[stopped].reshape(-1), minlength=channels + 1)[:channels]
        rising = rising - ended
        left = np.maximum(left - level * ended, 0.0)
    return rates


def _members(paths: Ints, channels: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the flows of channel 0, then those of channel 1 ..; and where each channel begins."""
    order = np.argsort(paths, axis=None, kind="stable")
    counts = np.bincount(paths.reshape(-1), minlength=channels + 1)[:channels]
    first = np.concatenate([[0], np.cumsum(counts)])
    return order[: first[-1]] // paths.shape[1], first


def _slices(
    values: NDArray[np.intp], begin: NDArray[np.intp], end: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return ``values[begin[0]:end[0]]``, ``values[begin[1]:end[1]]`` .. joined."""
    lengths = end - begin
    offset = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    joined: NDArray[np.intp] = values[np.repeat(begin, lengths) + offset]
    return joined
