"""Addresses matched by few masks, where it does not matter what other masks match."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from operator import or_

ALL_BITS = (1 << 48) - 1


def cubes(wanted: Collection[int], unwanted: Collection[int]) -> list[tuple[int, int]]:
    """Return (value, mask) pairs that match all ``wanted`` addresses and none of ``unwanted``.

    Greedy: from the lowest address that is not matched yet, bits are left out from the lowest on,
    as long as nothing unwanted is matched. Bits in which all addresses agree are always left out.
    """
    everything = [*wanted, *unwanted]
    differing = reduce(or_, (address ^ everything[0] for address in everything), 0)
    bits = [1 << i for i in range(48) if differing >> i & 1]
    found: list[tuple[int, int]] = []
    left = set(wanted)
    while left:
        value, mask = min(left), differing
        for bit in bits:
            smaller = mask & ~bit
            if not any((value ^ address) & smaller == 0 for address in unwanted):
                mask = smaller
        left = {address for address in left if (value ^ address) & mask}
        found.append((value & mask, mask))
    return found
