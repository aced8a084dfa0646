"""Classes of destination addresses that the rules of all switches treat alike.

A pattern of a rule is a cube: the addresses that agree with its value in the bits of its mask. The
division is such that each pattern of a rule contains a class wholly, or has none of its addresses.
A class is a cube without the cubes of some later classes: rules that name single addresses inside
of a wider pattern leave a class for the rest of it. Proofs list these classes
(:mod:`knotless.verification.proof_file`); the more there are, the longer it takes to check them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

ADDRESS_BITS = 48
EXACT = (1 << ADDRESS_BITS) - 1
"""The mask of a single address."""


class Cube(NamedTuple):
    """The addresses that have ``value`` in the bits of ``mask``; other bits of the value are 0."""

    value: int
    mask: int

    @property
    def addresses(self) -> int:
        """The number of addresses."""
        return 1 << (ADDRESS_BITS - self.mask.bit_count())

    def meets(self, other: Cube) -> bool:
        """Tell whether both have an address."""
        return not (self.value ^ other.value) & self.mask & other.mask

    def within(self, other: Cube) -> Cube:
        """Return the addresses that both have, which are some."""
        return Cube(self.value | other.value, self.mask | other.mask)

    def contains(self, other: Cube) -> bool:
        """Tell whether this one has all addresses of the other one."""
        return not self.mask & ~other.mask and self.meets(other)


ANY = Cube(0, 0)
GROUPS = Cube(1 << 40, 1 << 40)
"""Addresses of groups of hosts, and of all (IEEE 802, 8.2.2)."""


class AddressClass(NamedTuple):
    """The addresses of a cube that are in none of ``without``, cubes of later classes inside."""

    cube: Cube
    without: tuple[Cube, ...] = ()


def address_classes(patterns: Iterable[Cube], within: Cube = ANY) -> list[AddressClass]:
    """Divide the addresses of a cube, by default all, into classes.

    Each pattern, which is in the cube or is the cube, has all addresses of a class or none.

    Returns
    -------
    list of AddressClass
        None is empty, each address is in one of them, and each cube with a mask of all bits among
        the patterns is a class. They depend on the set of patterns only.

    Examples
    --------
    >>> low, one = Cube(0, 1), Cube(4, EXACT)
    >>> address_classes([low, one]) == [
    ...     AddressClass(ANY, (low,)), AddressClass(low, (one,)), AddressClass(one)
    ... ]
    True

    """
    classes: list[AddressClass] = []
    # Depth first, with a stack: an address has more bits than a recursion should be deep.
    open_cells = [(within, sorted({*patterns} - {within}))]
    while open_cells:
        cell, inside = open_cells.pop()
        nested = _nested(cell, inside)
        if nested is not None:
            classes += nested
            continue
        bit = _most_tested_bit(cell, inside)
        for value in (cell.value | bit, cell.value):
            half = Cube(value, cell.mask | bit)
            rest = [p for p in inside if p.meets(half) and not p.contains(half)]
            open_cells.append((half, rest))
    return classes


def hull(cubes: Collection[Cube]) -> Cube:
    """Return the smallest cube that contains all of some, which are at least one.

    Examples
    --------
    >>> hull([Cube(5, EXACT), Cube(4, EXACT)]) == Cube(4, EXACT - 1)
    True

    """
    first = next(iter(cubes)).value
    mask = EXACT
    for cube in cubes:
        mask &= cube.mask & ~(cube.value ^ first)
    return Cube(first & mask, mask)


def outside(cube: Cube) -> list[Cube]:
    """Return cubes that have all addresses but those of one: as few as it has bits.

    The first has the addresses of groups, if the cube has none.

    Examples
    --------
    >>> outside(Cube(1, 3)) == [Cube(2, 2), Cube(0, 3)]
    True

    """
    bits = [1 << i for i in range(ADDRESS_BITS) if cube.mask >> i & 1]
    cubes, decided = list[Cube](), 0
    for bit in sorted(bits, key=lambda bit: (bit == GROUPS.mask, bit), reverse=True):
        decided |= bit
        cubes.append(Cube((cube.value ^ bit) & decided, decided))
    return cubes


def coarse_classes(
    shared: Iterable[Cube], own: Iterable[Cube], within: Cube = ANY
) -> list[AddressClass]:
    """Divide the addresses of a cube, by default all, by the ``shared`` patterns.

    They are divided by others only where that is needed.

    ``own`` are patterns that the rules of few switches test: a reader can divide a class when it
    comes to such a switch. Both parts must have addresses then, or the reader would follow frames
    that nobody can send. So where the ``own`` patterns in a class and the cubes that it is without
    could have all addresses together, and where one is not wholly in a class, they divide here.
    """
    chosen, others = {*shared}, {*own}
    while True:
        others -= chosen
        classes = address_classes(chosen, within)
        if not (more := _needed(classes, others)):
            return classes
        chosen |= more


def _needed(classes: Iterable[AddressClass], others: Iterable[Cube]) -> set[Cube]:
    """Return the patterns that are in no class wholly, or could fill one with others."""
    without = {one.cube: one.without for one in classes}
    masks = sorted({cube.mask for cube in without}, key=lambda mask: (-mask.bit_count(), mask))
    inside: dict[Cube, list[Cube]] = {}
    more = set()
    for pattern in others:
        around = (Cube(pattern.value & mask, mask) for mask in masks if not mask & ~pattern.mask)
        cube = next((cube for cube in around if cube in without), None)
        if cube is None or any(map(pattern.meets, without[cube])):
            more.add(pattern)
        else:
            inside.setdefault(cube, []).append(pattern)
    for cube, patterns in inside.items():
        outside = without[cube]
        if outside and sum(one.addresses for one in (*patterns, *outside)) >= cube.addresses:
            more.update(patterns)
    return more


def _nested(cell: Cube, patterns: Collection[Cube]) -> list[AddressClass] | None:
    """Return the classes of a cell whose patterns are nested: each two apart, or one in the other.

    None if there are others, if a class would be empty, or if a pattern is partly outside of the
    cell: readers compare whole patterns with what a class is without, not the part inside.
    """
    by_mask: dict[int, set[int]] = {}
    for value, mask in patterns:
        if cell.mask & ~mask:
            return None
        by_mask.setdefault(mask, set()).add(value)
    masks = sorted(by_mask, key=lambda mask: (mask.bit_count(), mask))
    children: dict[Cube, list[Cube]] = {cell: []}
    wider: list[int] = []
    for mask in masks:
        for other in wider:
            if other & ~mask and _meet(other, by_mask[other], mask, by_mask[mask]):
                return None
        for value in sorted(by_mask[mask]):
            around = (Cube(value & other, other) for other in reversed(wider) if not other & ~mask)
            parent = next((cube for cube in around if cube.value in by_mask[cube.mask]), cell)
            cube = Cube(value, mask)
            children[parent].append(cube)
            children[cube] = []
        wider.append(mask)
    for cube, inner in children.items():
        if inner and cube.addresses == sum(one.addresses for one in inner):
            return None
    return [AddressClass(cube, tuple(inner)) for cube, inner in children.items()]


def _meet(mask: int, values: Collection[int], other: int, others: Collection[int]) -> bool:
    """Tell whether a cube of the one mask and one of the other have an address in common."""
    both = mask & other
    return not {value & both for value in values}.isdisjoint(value & both for value in others)


def _most_tested_bit(cell: Cube, patterns: Iterable[Cube]) -> int:
    """Return the bit that most patterns test, of those that the cell leaves open; the highest."""
    by_mask = Counter(mask for _, mask in patterns)

    def tests(bit: int) -> tuple[int, int]:
        return sum(count for mask, count in by_mask.items() if mask & bit), bit

    return max((1 << i for i in range(ADDRESS_BITS) if not cell.mask >> i & 1), key=tests)
