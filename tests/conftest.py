"""What holds for every test: examples are the same in every run, and Ctrl-C is Ctrl-C."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

settings.register_profile("knotless", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("knotless")

# What a shell starts in the background ignores SIGINT, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, unless the command line names the marker."""
    if "long" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
