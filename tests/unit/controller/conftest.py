"""The hubs on which green threads run: ours, and Eventlet's as under ``ryu-manager``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from knotless.controller.green import hub as hubs
from knotless.controller.green.eventlet_hub import EventletHub


@cache
def _eventlet() -> hubs.Hub:
    """It is one for all tests, as its way to take calls of other threads stays open."""
    return EventletHub()


@pytest.fixture(params=["ours", "eventlet"])
def each_hub(request: pytest.FixtureRequest) -> Iterator[hubs.Hub]:
    """Have green threads of the test run on one hub after the other."""
    before = hubs.use(hubs.current() if request.param == "ours" else _eventlet())
    yield hubs.current()
    hubs.use(before)


@pytest.fixture
def eventlet_hub() -> Iterator[None]:
    """Have green threads of the test run among Ryu's."""
    before = hubs.use(_eventlet())
    yield
    hubs.use(before)
