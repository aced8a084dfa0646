"""Eventlet's side of a simulated hub, for Ryu: its green threads run among those of controllers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eventlet import hubs
from eventlet.hubs.hub import BaseHub

from knotless.controller.green.hub import Call
from tests.seeded.hub import SimulatedHub


class RyuHub(BaseHub):  # type: ignore[misc]
    """Eventlet's hub while a simulated one runs: greenlet, timers and clock are its own."""

    def __init__(self, hub: SimulatedHub) -> None:
        super().__init__(clock=lambda: hub.now_s)
        self._hub = hub
        self.greenlet = hub.greenlet

    def add_timer(self, timer: Any) -> float:
        """Schedule a timer; see BaseHub."""
        function, args, _ = timer.tpl

        def fire() -> None:
            if not timer.called:
                timer()

        self._hub.schedule(timer.seconds or 0.0, function, args, Call(lambda _: None, fire))
        return self._hub.now_s

    def timer_canceled(self, timer: Any) -> None:
        """Leave a timer where it is; it does nothing when it is due."""

    def switch(self) -> Any:
        """Let others run; see BaseHub."""
        return self._hub.switch()

    def wait(self, seconds: float | None = None) -> None:
        """Never called: time is simulated."""
        raise NotImplementedError


@contextmanager
def ryu_runs(hub: SimulatedHub) -> Iterator[None]:
    """Have Eventlet's green threads run on a simulated hub meanwhile, and give back its own."""
    before = hubs._threadlocal.__dict__.get("hub")
    hubs._threadlocal.hub = RyuHub(hub)
    try:
        yield
    finally:
        hubs._threadlocal.__dict__.pop("hub", None)
        if before is not None:
            hubs._threadlocal.hub = before
