"""Settings of all tests: tiers, no limits of time for properties, and SIGINT not ignored."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support import green_threads

pytest_plugins = ["tests.tiers.plugin"]

# What is generated follows from the seed of the tier alone, not from what earlier runs have found.
settings.register_profile("knotless", deadline=None, database=None, print_blob=True)
settings.load_profile("knotless")

# Shells start background processes with SIGINT ignored, and the tests' processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _nothing_goes_on() -> Iterator[None]:
    """Fail a test that leaves a green thread or a timer, and end that: later tests run without."""
    before = green_threads.going_on().keys()
    yield
    left = green_threads.left_since(before)
    if left:
        green_threads.end(left)
        pytest.fail(f"it left what goes on: {', '.join(sorted(left.values()))}")
