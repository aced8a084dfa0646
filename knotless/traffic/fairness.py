"""Max-min fair rates of simultaneous flows.

References
----------
Bertsekas and Gallager, Data Networks, section 6.5.2: all rates rise together; the rate of a flow
stops rising when one of its channels is full.

"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from knotless.routing.graphs.channels import Ints

_SAME = 1e-9
"""Relative difference below which two shares count as equal."""

Rates = NDArray[np.float64]


def fair_rates(
    hops: Sequence[Ints], capacity: Rates, loads: Sequence[Rates] | None = None
) -> Rates:
    """Return the fair rate of each flow, in the unit of ``capacity``.

    ``hops`` holds one array (flows,) for each hop: the channels that the flows take, or
    ``len(capacity)`` where a path has ended. ``loads``, of the same shape, are the rates that the
    channels carry for each unit of a flow's rate, above 0; by default 1. Raises ValueError for a
    flow that takes no channel.

    A channel's share is the capacity that its stopped flows leave, divided among the others. In
    each step the channels with the smallest share are full, and their flows stop at that rate.
    """
    channels = len(capacity)
    paths = np.stack(hops, axis=1)
    weights = np.ones(paths.shape) if loads is None else np.stack(loads, axis=1)
    if (paths == channels).all(axis=1).any():
        raise ValueError("a flow that takes no channel has no fair rate")
    members, first = _members(paths, channels)
    spare = capacity.astype(np.float64)
    rising = np.diff(first)
    load = _sums(paths, weights, channels)
    rates = np.full(len(paths), np.nan)
    while rising.any():
        share = np.divide(spare, load, out=np.full(channels, np.inf), where=rising > 0)
        level = share.min()
        full = np.flatnonzero(share <= level * (1 + _SAME))
        stopped = np.unique(_slices(members, first[full], first[full + 1]))
        stopped = stopped[np.isnan(rates[stopped])]
        rates[stopped] = level
        ended = np.bincount(paths[stopped].reshape(-1), minlength=channels + 1)[:channels]
        rising = rising - ended
        less = _sums(paths[stopped], weights[stopped], channels)
        load = load - less
        spare = np.maximum(spare - level * less, 0.0)
    return rates


def _sums(paths: Ints, weights: Rates, channels: int) -> Rates:
    """Return the sum of the weights on each channel."""
    sums = np.bincount(paths.reshape(-1), weights.reshape(-1), channels + 1)[:channels]
    return np.asarray(sums, dtype=np.float64)


def _members(paths: Ints, channels: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the flows of channel 0, then those of channel 1 .., and where each starts."""
    order = np.argsort(paths, axis=None, kind="stable")
    counts = np.bincount(paths.reshape(-1), minlength=channels + 1)[:channels]
    first = np.concatenate([[0], np.cumsum(counts)])
    return order[: first[-1]] // paths.shape[1], first


def _slices(
    values: NDArray[np.intp], begin: NDArray[np.intp], end: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Concatenate ``values[begin[0]:end[0]]``, ``values[begin[1]:end[1]]``, and so on."""
    lengths = end - begin
    offset = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    parts: NDArray[np.intp] = values[np.repeat(begin, lengths) + offset]
    return parts
