"""Controllers of a test, which models of switches surround: in simulated time, and ended with it.

Who waits for a time does so in simulated time only, so that no machine decides whether something is
late. Green threads run on the controller's own hub, in the same order as otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from unittest.mock import patch

import pytest

from knotless.controller import runtime
from knotless.controller.green import hub as hubs

_LOOK_S = 1e-5
running = ExitStack()
"""Closes the controllers that a test has begun."""


class SimulatedClock:
    """A clock that each look at it moves a little: no two timers are due at the same time."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        self.now_s += _LOOK_S
        return self.now_s


@pytest.fixture(autouse=True)
def _simulated_time() -> Iterator[None]:
    """Have the hub, and the controllers in it, use a simulated clock, and end the controllers."""
    hub, clock = hubs.current(), SimulatedClock()
    assert isinstance(hub, hubs.SelectorHub)
    poll = hub.wait

    def wait(seconds: float | None) -> None:
        if seconds is None:  # a thread of the system works
            poll(None)
        else:
            clock.now_s += seconds  # nobody has anything to do before
            poll(0)

    with (
        patch.object(hub, "clock", clock),
        patch.object(hub, "wait", wait),
        patch.object(runtime, "now_s", clock),
        running,
    ):
        yield
