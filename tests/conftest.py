"""Settings of all tests: the same generated examples in every run, and SIGINT not ignored."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

settings.register_profile("knotless", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("knotless")

# Shells start background processes with SIGINT ignored, and the tests' processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests that take long, unless the command line names their marker."""
    if "long" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
