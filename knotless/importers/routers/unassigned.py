"""Ranges of addresses that no host has but routers forward: by a default or another stale route."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless.importers.prefixes import Prefix, Ranges


@dataclass(frozen=True)
class Unassigned:
    """Ranges of addresses that no host has: their ``places`` and the ``kind`` of each.

    By kind: its actions in each layer (``rows``), its space, the place of one of its ranges, and
    the longest prefix of that range. Kinds of the widest prefixes come first.
    """

    places: NDArray[np.int64]
    kind: NDArray[np.int64]
    rows: list[NDArray[np.int32]]
    spaces: NDArray[np.int64]
    first: NDArray[np.int64]
    prefixes: list[Prefix | None]

    def names(self, ranges: Ranges, used: AbstractSet[str]) -> list[str]:
        """Return a name of each kind, none of ``used``: its prefix, or the range."""
        texts: list[str] = []
        names = set(used)
        for place, prefix in zip(self.first.tolist(), self.prefixes, strict=True):
            text = ranges.text(place) if prefix is None else prefix.text
            texts.append(text if text not in names else ranges.text(place))
            names.add(texts[-1])
        return texts


def unassigned_ranges(
    layers: Sequence[NDArray[np.int32]],
    places: NDArray[np.int64],
    ranges: Ranges,
    prefixes: Iterable[Prefix],
    flooded: Mapping[int, NDArray[np.bool_]],
    dropped: int,
) -> Unassigned:
    """Return the kinds of those ranges at ``places`` that some router forwards.

    ``layers`` are the actions by range and router, ``dropped`` is that of no route. ``flooded`` are
    the ranges that a bridge sends to all ports, by its number. In a tree of bridges this adds no
    cycle; that others are loops is a finding of its own.
    """
    places = places[~ranges.gaps[places]]
    longest = layers[0][places]
    for router, of_bridge in flooded.items():
        longest[of_bridge[places], router] = dropped
    forwarded = (longest != dropped).any(axis=1)
    places, longest = places[forwarded], longest[forwarded]
    rows = [longest, *(layer[places] for layer in layers[1:])]
    spaces = ranges.spaces[places]
    _, first, kind = np.unique(
        np.column_stack([*rows, spaces]), axis=0, return_index=True, return_inverse=True
    )
    named = _longest(prefixes, ranges, places[first])
    sizes = [0 if prefix is None else prefix.size for prefix in named]
    order = np.array(sorted(range(len(first)), key=lambda i: -sizes[i]), dtype=np.int64)
    first, number = first[order], np.argsort(order)
    return Unassigned(
        places,
        number[kind.reshape(-1)],
        [row[first] for row in rows],
        spaces[first],
        places[first],
        [named[i] for i in order.tolist()],
    )


def _longest(
    prefixes: Iterable[Prefix], ranges: Ranges, places: NDArray[np.int64]
) -> list[Prefix | None]:
    """Return the longest of ``prefixes`` that has each place."""
    longest = np.full(len(ranges), -1, dtype=np.int64)
    ordered = sorted({*prefixes} if len(places) else (), key=lambda prefix: -prefix.size)
    for number, prefix in enumerate(ordered):
        longest[ranges.places(prefix)] = number
    return [ordered[number] if number >= 0 else None for number in longest[places].tolist()]
