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

    By kind: its actions in each layer (``rows``), its space, and the place of one of its ranges.
    """

    places: NDArray[np.int64]
    kind: NDArray[np.int64]
    rows: list[NDArray[np.int32]]
    spaces: NDArray[np.int64]
    first: NDArray[np.int64]


def unassigned_ranges(
    layers: Sequence[NDArray[np.int32]],
    spaces: NDArray[np.int64],
    places: NDArray[np.int64],
    flooded: Mapping[int, NDArray[np.bool_]],
    dropped: int,
) -> Unassigned:
    """Return the kinds of those ranges at ``places`` that some router forwards.

    ``flooded`` are the ranges that a bridge sends to all ports, by its number. In a tree of bridges
    this adds no cycle; that others are loops is a finding of its own.
    """
    longest = layers[0][places]
    for router, of_bridge in flooded.items():
        longest[of_bridge[places], router] = dropped
    forwarded = (longest != dropped).any(axis=1)
    places, longest = places[forwarded], longest[forwarded]
    rows = [longest, *(layer[places] for layer in layers[1:])]
    _, first, kind = np.unique(
        np.column_stack([*rows, spaces[places]]), axis=0, return_index=True, return_inverse=True
    )
    return Unassigned(
        places, kind.reshape(-1), [row[first] for row in rows], spaces[places[first]], places[first]
    )


def names_of(
    unassigned: Unassigned, prefixes: Iterable[Prefix], ranges: Ranges, used: AbstractSet[str]
) -> list[str]:
    """Return a name of each kind: the longest prefix of one of its ranges, or that range."""
    if not len(unassigned.first):
        return []
    longest: list[Prefix | None] = [None] * len(ranges)
    for prefix in sorted({*prefixes}, key=lambda prefix: -prefix.size):
        block = ranges.places(prefix)
        longest[block] = [prefix] * (block.stop - block.start)
    texts: list[str] = []
    names = set(used)
    for place in unassigned.first.tolist():
        prefix = longest[place]
        text = prefix.text if prefix is not None else ranges.text(place)
        texts.append(text if text not in names else ranges.text(place))
        names.add(texts[-1])
    return texts
