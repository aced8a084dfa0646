"""Eventlet's hub, which green threads share with Ryu and other people's applications in it.

In a process whose standard library Eventlet has changed, as ``ryu-manager`` has it do, nothing else
may wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eventlet import hubs, patcher

from knotless.controller.green.hub import Call, Hub, use


class EventletHub(Hub):
    """The operations of a hub, by those of Eventlet's in the thread that calls."""

    @property
    def greenlet(self) -> Any:
        """The greenlet of Eventlet's loop."""
        hub = hubs.get_hub()
        hub.ensure_greenlet()
        return hub.greenlet

    def call_later(self, seconds: float, function: Callable[..., object], *args: object) -> Any:
        """See Hub."""
        return hubs.get_hub().schedule_call_global(seconds, function, *args)

    def watch(self, descriptor: int, function: Callable[[], object], *, writing: bool) -> Call:
        """See Hub."""
        hub = hubs.get_hub()

        def ready(_descriptor: int) -> None:
            function()

        def nothing(*_: object) -> None:
            """Nobody else opens or closes the descriptor meanwhile."""

        listener = hub.add(hub.WRITE if writing else hub.READ, descriptor, ready, nothing, nothing)
        return Call(lambda _: hub.remove(listener), function)

    def switch(self) -> Any:
        """See Hub."""
        return hubs.get_hub().switch()


def use_if_patched() -> None:
    """Use this hub if Eventlet has changed the standard library."""
    if patcher.is_monkey_patched("socket"):
        use(EventletHub())
