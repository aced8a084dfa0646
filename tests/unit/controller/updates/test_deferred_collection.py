"""Collections are put off while switches wait, and never for long."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from knotless.controller.updates.timing import COLLECTION_DEFERRED_S, DeferredCollection

Calls = list[tuple[float, Callable[[], None]]]


@pytest.fixture
def later() -> Iterator[Calls]:
    """Return what is to be called later; the collector is enabled before and afterwards."""
    gc.enable()  # a test whose controller ended amid a change leaves it disabled
    yield []
    gc.enable()


def garbage(later: Calls) -> DeferredCollection:
    return DeferredCollection(lambda seconds, call: later.append((seconds, call)))


def test_nothing_is_collected_until_the_change_is_complete(later: Calls) -> None:
    collection = garbage(later)
    collection.put_off()
    assert not gc.isenabled()
    collection.resume()
    assert gc.isenabled()


def test_a_change_that_takes_long_does_not_put_it_off_for_ever(later: Calls) -> None:
    collection = garbage(later)
    collection.put_off()
    collection.put_off()
    (first_s, first), (second_s, second) = later
    assert first_s == second_s == COLLECTION_DEFERRED_S
    first()  # another change has begun since then
    assert not gc.isenabled()
    second()
    assert gc.isenabled()
