"""Properties of all fabrics of the tree and random families."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.topologies import load
from knotless.topologies.math.field import field, prime_power

SMALL_ORDERS = [order for order in range(2, 33) if prime_power(order)]


@given(st.sampled_from(SMALL_ORDERS), st.data())
@pytest.mark.examples(2)
def test_finite_fields_have_the_axioms(order: int, data: st.DataObject) -> None:
    gf = field(order)
    element = st.integers(0, order - 1)
    a, b, c = data.draw(element), data.draw(element), data.draw(element)
    plus, times = gf.plus, gf.times
    assert plus[a][b] == plus[b][a]
    assert times[a][b] == times[b][a]
    assert plus[plus[a][b]][c] == plus[a][plus[b][c]]
    assert times[times[a][b]][c] == times[a][times[b][c]]
    assert times[a][plus[b][c]] == plus[times[a][b]][times[a][c]]
    assert plus[a][0] == a
    assert times[a][1] == a
    assert plus[a][gf.negative[a]] == 0
    assert a == 0 or sorted(times[a]) == list(range(order)), "every other element has an inverse"


def test_prime_orders_are_arithmetic_modulo_the_order() -> None:
    gf = field(13)
    assert all(gf.plus[a][b] == (a + b) % 13 for a in range(13) for b in range(13))
    assert all(gf.times[a][b] == a * b % 13 for a in range(13) for b in range(13))


def test_prime_powers_are_found() -> None:
    assert SMALL_ORDERS == [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]


@given(st.integers(2, 40), st.integers(2, 9), st.integers(0, 10**6))
@pytest.mark.examples(1.5)
def test_random_fabrics_are_regular_simple_connected_and_repeatable(
    count: int, degree: int, seed: int
) -> None:
    if degree >= count or count * degree % 2:
        return
    spec = f"random,{count},degree={degree},hosts=1,seed={seed}"
    fabric = load(spec)  # validated, so connected and without self-links
    assert all(len(ports) == degree for ports in fabric.neighbours.values())
    joined = {frozenset((link.a, link.b)) for link in fabric.links}
    assert len(joined) == len(fabric.links) == count * degree // 2
    assert load(spec) == fabric
