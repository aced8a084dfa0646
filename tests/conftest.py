"""Settings of all tests: tiers, no limits of time for properties, and SIGINT not ignored."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings

pytest_plugins = ["tests.tiers.plugin"]

# What is generated follows from the seed of the tier alone, not from what earlier runs have found.
settings.register_profile("knotless", deadline=None, database=None, print_blob=True)
settings.load_profile("knotless")

# Shells start background processes with SIGINT ignored, and the tests' processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _green_threads_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End the green threads that a test began: they would log in the middle of later tests."""
    hub: Any = sys.modules.get("ryu.lib.hub")
    if hub is None:
        yield
        return
    began: list[Any] = []

    def keeping(spawn: Callable[..., Any]) -> Callable[..., Any]:
        def spawn_and_keep(*args: Any, **kwargs: Any) -> Any:
            began.append(spawn(*args, **kwargs))
            return began[-1]

        return spawn_and_keep

    for name in ("spawn", "spawn_after"):
        monkeypatch.setattr(hub, name, keeping(getattr(hub, name)))
    yield
    for thread in began:
        hub.kill(thread)
