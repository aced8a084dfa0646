"""Cycles: found if they exist, the shortest one, in a canonical form."""

from __future__ import annotations

import pytest

from knotless.routing.graphs.dependencies import find_cycle


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ([], []),
        ([(1, 2), (2, 3), (1, 3)], []),
        ([(3, 3)], [3]),
        ([(2, 3), (3, 1), (1, 2)], [1, 2, 3]),
        ([(1, 2), (2, 3), (3, 4), (4, 1), (5, 6), (6, 5)], [5, 6]),
        ([(1, 4), (4, 1), (1, 3), (3, 1)], [1, 3]),
        ([(0, 1), (1, 2), (2, 1)], [1, 2]),
        ([(1, 2), (2, 9), (9, 1), (1, 3), (3, 8), (8, 1)], [1, 2, 9]),
    ],
)
def test_shortest_cycle_from_its_smallest_member(
    edges: list[tuple[int, int]], cycle: list[int]
) -> None:
    for turn in range(len(edges) + 1):
        assert find_cycle(edges[turn:] + edges[:turn]) == cycle
    assert find_cycle(edges[::-1]) == cycle


def test_a_long_chain_needs_no_deep_recursion() -> None:
    chain = [(i, i + 1) for i in range(50_000)]
    assert find_cycle(chain) == []
    assert find_cycle([*chain, (50_000, 49_999)]) == [49_999, 50_000]
