"""Classes of addresses: each address is in one, and rules treat all addresses of a class alike."""

from __future__ import annotations

import random

import pytest

from knotless.verification.address_classes import (
    ADDRESS_BITS,
    ANY,
    EXACT,
    AddressClass,
    Cube,
    address_classes,
    coarse_classes,
    outside,
)

GROUPS = Cube(1 << 40, 1 << 40)


def masked(value: int, mask: int) -> Cube:
    return Cube(value & mask, mask)


def contains(outer: Cube, inner: Cube) -> bool:
    return outer.mask & ~inner.mask == 0 and (outer.value ^ inner.value) & outer.mask == 0


def random_patterns(rng: random.Random) -> list[Cube]:
    """Return patterns of few bits, so that they meet, are nested or apart; and single addresses."""
    bits = rng.sample(range(ADDRESS_BITS), rng.randint(1, 9))
    patterns = []
    for _ in range(rng.randint(0, 12)):
        mask = sum(1 << bit for bit in rng.sample(bits, rng.randint(0, len(bits))))
        patterns.append(masked(rng.getrandbits(ADDRESS_BITS), mask))
    for _ in range(rng.randint(0, 6)):
        around = rng.choice(patterns) if patterns else ANY
        patterns.append(Cube(around.value | rng.getrandbits(ADDRESS_BITS) & ~around.mask, EXACT))
    return patterns


def addresses(one: AddressClass) -> int:
    return one.cube.addresses - sum(cube.addresses for cube in one.without)


def apart(one: AddressClass, other: AddressClass) -> bool:
    """Tell whether two classes have no address in common, by their cubes alone."""
    return not one.cube.meets(other.cube) or any(
        contains(cube, inner.cube)
        for outer, inner in ((one, other), (other, one))
        for cube in outer.without
    )


def require_partition(classes: list[AddressClass], patterns: list[Cube]) -> None:
    """Require that each address is in exactly one class, and that no pattern divides one."""
    assert all(addresses(one) > 0 for one in classes)
    assert sum(map(addresses, classes)) == 2**ADDRESS_BITS
    for number, one in enumerate(classes):
        later = {other.cube for other in classes[number + 1 :]}
        assert later.issuperset(one.without)
        assert all(contains(one.cube, cube) for cube in one.without)
        assert all(apart(one, other) for other in classes[number + 1 :])
        for pattern in patterns:
            outside = not pattern.meets(one.cube) or any(
                contains(cube, pattern) for cube in one.without
            )
            assert outside or contains(pattern, one.cube), (pattern, one)


@pytest.mark.seeds(300, gate=60)
def test_each_address_is_in_exactly_one_class_that_no_pattern_divides(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    patterns = random_patterns(rng)
    classes = address_classes(patterns)
    assert address_classes(rng.sample(patterns, len(patterns))) == classes
    require_partition(classes, patterns)
    singles = {one.cube for one in classes if not one.without}
    assert singles.issuperset(pattern for pattern in patterns if pattern.mask == EXACT)


@pytest.mark.seeds(300, gate=60)
def test_a_class_that_single_switches_divide_keeps_addresses_that_they_do_not_name(
    seed: int,
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    patterns = random_patterns(rng)
    shared = [pattern for pattern in patterns if rng.random() < 0.5]
    classes = coarse_classes(shared, patterns)
    require_partition(classes, shared)
    fine = address_classes(patterns)
    for one in classes:
        parts = [part for part in fine if not apart(part, one)]
        dividing = [p for p in patterns if p.meets(one.cube) and not contains(p, one.cube)]
        dividing = [p for p in dividing if not any(contains(cube, p) for cube in one.without)]
        assert all(contains(one.cube, p) for p in dividing)
        rest = [part for part in parts if not any(contains(p, part.cube) for p in dividing)]
        assert rest or not one.without
        for pattern in dividing:
            assert any(contains(pattern, part.cube) for part in parts)


def test_addresses_behind_one_switch_are_one_class() -> None:
    prefix = masked(0x0200_0000_0500, EXACT ^ 0x7)
    hosts = [Cube(prefix.value | port, EXACT) for port in range(1, 5)]
    assert coarse_classes([prefix], hosts)[-1] == AddressClass(prefix)
    full = [Cube(prefix.value | port, EXACT) for port in range(8)]
    assert coarse_classes([prefix], full)[-1] == AddressClass(prefix)


def test_patterns_that_leave_a_class_nothing_but_its_exceptions_divide_it() -> None:
    prefix = masked(0x0200_0000_0500, EXACT ^ 0x7)
    full = [Cube(prefix.value | port, EXACT) for port in range(8)]
    classes = coarse_classes([prefix, full[0]], full)
    assert {*classes}.issuperset(map(AddressClass, full))


def test_nested_patterns_are_a_class_each_without_those_inside() -> None:
    prefix = masked(0x0200_0000_0500, EXACT ^ 0xFF)
    hosts = [Cube(prefix.value | port, EXACT) for port in (1, 2, 3)]
    assert address_classes([prefix, GROUPS, *hosts]) == [
        AddressClass(ANY, (GROUPS, prefix)),
        AddressClass(GROUPS),
        AddressClass(prefix, tuple(hosts)),
        *map(AddressClass, hosts),
    ]


def test_a_pattern_that_others_fill_is_no_class() -> None:
    low, high = Cube(0, 1), Cube(1, 1)
    assert address_classes([low, high]) == [AddressClass(low), AddressClass(high)]


def test_the_division_of_a_grid_grows_with_rows_times_columns_only() -> None:
    """Rows and columns of 16 by 16 switches meet; all else is nested in their 256 cells."""
    rows = [Cube(row << 12, 0xF000) for row in range(16)]
    columns = [Cube(column << 8, 0x0F00) for column in range(16)]
    hosts = [Cube(switch << 8 | port, EXACT) for switch in range(256) for port in (1, 2)]
    assert len(address_classes([*rows, *columns, *hosts])) == 256 + len(hosts)


def test_what_is_outside_of_a_cube_is_in_one_cube_for_each_of_its_bits() -> None:
    around = Cube(0x0200_0000_0001, EXACT ^ 0x1F00)
    cubes = outside(around)
    assert len(cubes) == 43
    assert cubes[0] == GROUPS
    assert sum(cube.addresses for cube in cubes) == (1 << 48) - around.addresses
    assert not any(
        a.meets(b) for n, a in enumerate([*cubes, around]) for b in [*cubes, around][n + 1 :]
    )
    assert Cube(4, 4).within(Cube(2, 3)) == Cube(6, 7)
