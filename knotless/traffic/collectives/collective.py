"""The interface of collective operations, and their registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import KnotlessError
from knotless.base.model_limits import MAX_BYTES
from knotless.base.plugins import Plugins
from knotless.base.printable import shortened
from knotless.base.suggestions import suggestion

Ranks = NDArray[np.uint32]
Bytes = NDArray[np.uint64]


class CollectiveError(KnotlessError):
    """A collective operation that does not exist, or not of so many hosts or bytes."""


@dataclass(frozen=True)
class Transfers:
    """Messages between ranks, in rounds; those of a rank start in their order.

    ``waiting[i]`` is the number of a transfer that starts when transfer ``needed[i]``, of an
    earlier round, has arrived at its source. ``rounds`` are the numbers of the first transfers of
    the rounds.
    """

    ranks: int
    source: Ranks
    destination: Ranks
    bytes: Bytes
    waiting: Ranks
    needed: Ranks
    rounds: tuple[int, ...]


@dataclass(frozen=True)
class Collective:
    """A collective operation.

    ``make(ranks, bytes)`` returns its transfers, for the data of each rank in bytes: the vector it
    has before (all-reduce, reduce-scatter), after (all-gather), or sends in all, with the part
    that it keeps (all-to-all). Reducing takes no time. ``bound`` is the least time on a fabric in
    which no two transfers meet: N ranks, M bytes, and T(b) the time of b bytes alone.
    """

    name: str
    summary: str
    bound: str
    make: Callable[[int, int], Transfers]


@cache
def collectives() -> Mapping[str, Collective]:
    """Return the collective operations by name, in alphabetical order."""
    return Plugins("knotless.traffic.collectives", Collective)


def collective_named(name: str) -> Collective:
    """Return a collective operation; raises CollectiveError if it does not exist."""
    registered = collectives()
    if name.lower() not in registered:
        hint = suggestion(name, registered)
        raise CollectiveError(f"there is no collective {shortened(name)!r}; {hint}")
    return registered[name.lower()]


def parts(name: str, ranks: int, size: int) -> Bytes:
    """Divide ``size`` bytes into a part for each rank; the first parts are longer by a byte.

    Raises CollectiveError for fewer than two ranks, or parts without bytes.
    """
    if ranks < 2:
        raise CollectiveError(f"{name} needs two hosts or more, not {ranks}")
    if not ranks <= size < MAX_BYTES:
        raise CollectiveError(
            f"{name} of {ranks} hosts needs {ranks} to 2**40 - 1 bytes a host, not {size}"
        )
    each, rest = divmod(size, ranks)
    return np.where(np.arange(ranks) < rest, each + 1, each).astype(np.uint64)


def transfers(
    ranks: int,
    rounds: Iterable[tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]],
    needs: Iterable[tuple[NDArray[np.integer], NDArray[np.integer]]],
) -> Transfers:
    """Return the transfers of ``rounds``, (source, destination, bytes) each.

    ``needs`` are (waiting, needed) transfers, by number.
    """
    columns = list(rounds)
    pairs = list(needs) or [(np.zeros(0, dtype=np.uint32),) * 2]
    first = np.cumsum([0, *(len(source) for source, _, _ in columns)])[:-1]
    return Transfers(
        ranks,
        np.concatenate([source for source, _, _ in columns]).astype(np.uint32),
        np.concatenate([to for _, to, _ in columns]).astype(np.uint32),
        np.concatenate([size for _, _, size in columns]).astype(np.uint64),
        np.concatenate([waiting for waiting, _ in pairs]).astype(np.uint32),
        np.concatenate([needed for _, needed in pairs]).astype(np.uint32),
        tuple(first.tolist()),
    )


def side_by_side(one: Transfers, groups: int) -> Transfers:
    """Return the transfers of several groups of ranks that do the same at the same time.

    Group g has the ranks from ``g * one.ranks`` on.
    """
    lengths = np.diff([*one.rounds, len(one.source)])
    # Of a round, those of one group follow those of the group before.
    first = np.repeat(np.array(one.rounds), lengths)
    length = np.repeat(lengths, lengths)
    within = np.arange(len(one.source)) - first
    number = groups * first + np.arange(groups)[:, None] * length + within
    order = np.argsort(number.ravel())
    rank = np.arange(groups, dtype=np.uint32)[:, None] * np.uint32(one.ranks)
    return Transfers(
        groups * one.ranks,
        (one.source + rank).ravel()[order],
        (one.destination + rank).ravel()[order],
        np.tile(one.bytes, groups)[order],
        number[:, one.waiting].ravel().astype(np.uint32),
        number[:, one.needed].ravel().astype(np.uint32),
        tuple(groups * begin for begin in one.rounds),
    )


def ring(ranks: int, sizes: Bytes, rounds: int) -> Transfers:
    """Return ``rounds`` rounds in which each rank passes a part on to the next rank.

    In round k, from 0, rank r sends part r - k, which it has received in the round before.
    """
    rank = np.arange(ranks)
    before = (rank - 1) % ranks
    return transfers(
        ranks,
        [(rank, (rank + 1) % ranks, sizes[(rank - k) % ranks]) for k in range(rounds)],
        [(k * ranks + rank, (k - 1) * ranks + before) for k in range(1, rounds)],
    )
