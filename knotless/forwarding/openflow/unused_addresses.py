"""Unused addresses, each of which belongs to a host: compiled rules treat the two alike.

An unused address belongs to the host on whose branch of the binary trie of all hosts' addresses it
lies. See ``core/forwarding/src/compile/space.rs``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

ALL_BITS = (1 << 48) - 1


def masks_of(addresses: Iterable[int]) -> dict[int, int]:
    """Return by host's address the mask that matches it and the unused ones that belong to it.

    >>> masks = masks_of([0b001, 0b010, 0b011, 0b100])
    >>> {address: f"{mask & 0b111:03b}" for address, mask in sorted(masks.items())}
    {1: '110', 2: '111', 3: '111', 4: '100'}

    """
    ordered = sorted({*addresses})
    differing = reduce(or_, (address ^ ordered[0] for address in ordered), 0)
    masks: dict[int, int] = {}
    parts = [(ordered, ALL_BITS & ~differing)] if ordered else []
    while parts:
        part, mask = parts.pop()
        if len(part) == 1:
            masks[part[0]] = mask
            continue
        bit = 1 << (part[0] ^ part[-1]).bit_length() - 1
        place = next(i for i, address in enumerate(part) if address & bit)
        parts += [(part[:place], mask | bit), (part[place:], mask | bit)]
    return masks
