"""Items that are left out so that the edges of the others have no cycle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.routing.graphs.dependencies import find_cycle
from knotless.verification.changes.feedback import least_feedback, united

NODES = st.integers(0, 7)
EDGES = st.frozensets(st.tuples(NODES, NODES).filter(lambda edge: edge[0] != edge[1]), max_size=4)


@pytest.mark.examples(2)
@given(items=st.lists(EDGES, max_size=12), ranks=st.permutations(range(8)), fixed=EDGES)
def test_what_is_left_has_no_cycle_and_nothing_can_be_taken_back(
    items: list[frozenset[tuple[int, int]]],
    ranks: list[int],
    fixed: frozenset[tuple[int, int]],
) -> None:
    fixed = frozenset(edge for edge in fixed if ranks[edge[0]] < ranks[edge[1]])
    named = {f"item {number}": edges for number, edges in enumerate(items)}
    out = least_feedback(named, fixed)
    kept = united((fixed, *(edges for name, edges in named.items() if name not in out)))
    assert not find_cycle(sorted(kept))
    for name in out:
        assert find_cycle(sorted(kept | named[name]))
    assert least_feedback(named, fixed) == out


def test_the_weight_says_what_supersedes_left_out() -> None:
    cycles = {f"cycle {k}": frozenset({(0, k), (k, 1)}) for k in range(2, 8)}
    items = {**cycles, "back": frozenset({(1, 0)})}
    assert least_feedback(items, frozenset(), lambda item: 1 if item == "back" else 2) == {"back"}
    assert least_feedback(items, frozenset(), lambda item: 9 if item == "back" else 1) == set(
        cycles
    )
    assert least_feedback(cycles, frozenset({(1, 0)})) == set(cycles)
