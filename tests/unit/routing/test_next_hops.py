"""Next hops of tables, kept by class."""

import numpy as np
import pytest

from knotless._core.graph import NextHops
from knotless.controller.updates.worker import NOTHING
from knotless.routing.choices.single_path import _by_vlan
from knotless.routing.graphs.channels import Ints


def random_hops(tables: int, seed: int) -> Ints:
    """Return (tables, 5 switches, 9 columns) of few channels, many columns being alike."""
    draw = np.random.default_rng(seed)
    hops = draw.integers(-1, 2, (tables, 5, 9), dtype=np.int32)
    hops[:, :, 5:] = hops[:, :, :4]
    return hops


@pytest.mark.parametrize("tables", [1, 2, 4])
def test_next_hops_are_those_of_the_array(tables: int) -> None:
    for seed in range(20):
        hops = random_hops(tables, seed)
        kept = NextHops(hops)
        assert (len(kept), kept.shape) == (tables, hops.shape)
        np.testing.assert_array_equal(kept.array(), hops)
        assert all(kept.get(*place) == hop for place, hop in np.ndenumerate(hops))
        # The controller sends plans to another process.
        np.testing.assert_array_equal(NOTHING.unpack(NOTHING.pack(kept)).array(), hops)


@pytest.mark.parametrize("place", [(1, 0, 0), (0, 5, 0), (0, 0, 9)])
def test_there_is_no_next_hop_outside_of_the_array(place: tuple[int, int, int]) -> None:
    with pytest.raises(IndexError, match=r"in \(1, 5, 9\)"):
        NextHops(random_hops(1, 0)).get(*place)


def test_tables_of_one_vlan_become_one_unless_they_contradict() -> None:
    hops = np.array([[[3, -1, -1]], [[-1, 4, -1]], [[-1, 5, 6]]], dtype=np.int32)
    tables = NextHops(hops)
    assert _by_vlan(tables, {0: 2, 1: 3, 2: 4}) is tables
    assert _by_vlan(tables, {0: 2, 1: 3, 2: 3}) is None
    merged = _by_vlan(tables, {0: 2, 1: 3, 2: 2})
    assert merged is not None
    assert merged.array().tolist() == [[[3, 5, 6]], [[-1, 4, -1]]]
    some = _by_vlan(tables, {0: 2, 2: 3})
    assert some is not None
    np.testing.assert_array_equal(some.array(), hops[[0, 2]])
