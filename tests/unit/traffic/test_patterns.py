"""Traffic patterns: each follows its definition, and refuses fabrics that it does not fit."""

from __future__ import annotations

import pytest

from knotless.topologies import load
from knotless.topologies.formats.files import from_json, to_json
from knotless.traffic.patterns import PatternError, pattern_named, patterns


def sent(name: str, spec: str, seed: int = 1) -> dict[int, int]:
    """Return destination by source, for a pattern in which each host sends to at most one."""
    flows = pattern_named(name).flows(load(spec), seed)
    assert len({source for source, _ in flows}) == len(flows)
    return dict(flows)


def test_bit_patterns_by_their_binary_numbers() -> None:
    hosts = [f"{i:04b}" for i in range(16)]
    wanted = {
        "bit-reversal": [h[::-1] for h in hosts],
        "butterfly": [h[3] + h[1:3] + h[0] for h in hosts],
        "shuffle": [h[1:] + h[0] for h in hosts],
        "transpose": [h[2:] + h[:2] for h in hosts],
        "complement": [h.translate({48: 49, 49: 48}) for h in hosts],
    }
    for name, destinations in wanted.items():
        numbers = {i: int(bits, 2) for i, bits in enumerate(destinations) if int(bits, 2) != i}
        assert sent(name, "mesh,4,4") == numbers, name


@pytest.mark.parametrize("name", ["bit-reversal", "butterfly", "shuffle"])
def test_smallest_powers_of_two(name: str) -> None:
    assert sent(name, "flat,2") == {}
    assert len(sent(name, "flat,4")) == 2


def test_patterns_that_need_no_power_of_two() -> None:
    assert sent("complement", "flat,5") == {0: 4, 1: 3, 3: 1, 4: 0}
    assert sent("transpose", "flat,9") == {1: 3, 2: 6, 3: 1, 5: 7, 6: 2, 7: 5}
    assert sent("neighbour", "flat,3") == {0: 1, 1: 2, 2: 0}
    assert sent("tornado", "flat,5") == {0: 2, 1: 3, 2: 4, 3: 0, 4: 1}


def test_rings_are_those_of_the_grid() -> None:
    # Two hosts a switch; switch (x, y) is number x + 5 y.
    tornado = sent("tornado", "torus,5,4,hosts=2")
    assert tornado[0] == 2 * (2 + 5 * 1)
    assert tornado[2 * (4 + 5 * 3) + 1] == 2 * (1 + 5 * 0) + 1
    neighbour = sent("neighbour", "torus,5,4,hosts=2")
    assert neighbour[0] == 2 * (1 + 5)
    assert sorted(neighbour.values()) == list(range(40))


def test_permutations_follow_their_seed() -> None:
    first = sent("permutation", "torus,8,8", seed=3)
    assert first == sent("permutation", "torus,8,8", seed=3)
    assert first != sent("permutation", "torus,8,8", seed=4)
    assert len(set(first.values())) == len(first)
    assert set(first) == set(first.values())


def test_uniform_is_all_pairs() -> None:
    flows = pattern_named("uniform").flows(load("ring,4"))
    assert flows == [(a, b) for a in range(4) for b in range(4) if a != b]


def test_shift_by_a_number_is_one_phase_of_shift() -> None:
    fabric = load("ring,5")
    phases = [phase.tolist() for phase in pattern_named("shift").phases(fabric)]
    assert len(phases) == 5
    assert sorted(pair for phase in phases for pair in map(tuple, phase)) == [
        (a, b) for a in range(5) for b in range(5)
    ]
    assert list(map(tuple, phases[3])) == pattern_named("shift:3").flows(fabric)
    assert pattern_named("shift:8").flows(fabric) == pattern_named("shift:3").flows(fabric)


def test_the_schedule_of_a_latin_square_fat_tree() -> None:
    phases = [phase.tolist() for phase in pattern_named("schedule").phases(load("lsft,2"))]
    assert len(phases) == 21
    assert len({(a, b) for phase in phases for a, b in phase}) == 21 * 21


def test_patterns_have_summaries() -> None:
    wanted = "bit-reversal butterfly complement neighbour permutation schedule shift shuffle"
    assert list(patterns()) == [*wanted.split(), "tornado", "transpose", "uniform"]
    assert all(pattern.summary for pattern in patterns().values())


@pytest.mark.parametrize(
    ("name", "spec", "says"),
    [
        ("tornadoo", "ring,4", "did you mean 'tornado'"),
        ("x", "ring,4", "known are bit-reversal"),
        ("tornado:3", "ring,4", "takes no number"),
        ("shift:-1", "ring,4", "must be a whole number"),
        ("shift:", "ring,4", "must be a whole number"),
        ("shift:4", "ring,4", "must not be a multiple of its 4 hosts"),
        ("shift", "ring,4", "in phases"),
        ("bit-reversal", "ring,5", "power of two"),
        ("butterfly", "ring,6", "power of two"),
        ("shuffle", "ring,6", "power of two"),
        ("transpose", "ring,8", "square number"),
    ],
)
def test_mistakes_are_reported(name: str, spec: str, says: str) -> None:
    with pytest.raises(PatternError, match=says):
        pattern_named(name).flows(load(spec))


def test_a_grid_with_uneven_hosts_has_no_rings_of_hosts() -> None:
    text = to_json(load("mesh,2,2"))
    assert isinstance(text["hosts"], list)
    text["hosts"].pop()
    with pytest.raises(PatternError, match="0 to 1"):
        pattern_named("tornado").flows(from_json(text))


def test_a_schedule_where_none_is_known() -> None:
    with pytest.raises(PatternError, match="lsft,N"):
        list(pattern_named("schedule").phases(load("ring,4")))
