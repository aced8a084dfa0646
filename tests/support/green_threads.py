"""Green threads and timers that go on in the test process: the hub is one for all tests.

What a test leaves would slow down all later ones, and log in the middle of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Set
from functools import wraps
from typing import Any

_HUB, _THREADS = "knotless.controller.green.hub", "knotless.controller.green.threads"
_alive: dict[Any, None] = {}
"""Green threads that were made since :func:`going_on` was first called, and may go on."""


def left_since(before: Set[Any]) -> dict[Any, str]:
    """Return what goes on and did not before; what is due at once comes to its end first."""
    if not going_on().keys() - before:
        return {}
    sys.modules[_THREADS].sleep(0)
    return {part: name for part, name in going_on().items() if part not in before}


def going_on() -> dict[Any, str]:
    """Return what goes on now, with names: green threads, and timers and watches of nobody.

    The hub is not imported for that.
    """
    if _THREADS not in sys.modules:
        return {}
    _record_threads()
    hub: Any = getattr(sys.modules[_HUB]._chosen, "hub", None)
    if hub is None:
        return {}
    watches = (call for calls in hub.watches.values() for call in calls)
    calls = [*(entry[2] for entry in hub.timers), *watches]
    owners = {call: getattr(call.function, "__self__", None) for call in calls if call.function}
    beginning = [each for each in owners.values() if hasattr(each, "kill")]
    for thread in [thread for thread in _alive if not thread and thread not in beginning]:
        del _alive[thread]  # it never will
    parts = {thread: _running(thread) for thread in _alive}
    for call, owner in owners.items():
        # Who waits is one of the threads.
        if type(owner).__name__ not in ("Wait", "Thread", "Inbox"):
            parts[call] = f"a call of {call.function.__qualname__}"
    return parts


def end(parts: Iterable[Any]) -> None:
    """End green threads and timers."""
    for part in parts:
        if hasattr(part, "kill"):
            part.kill()
        else:
            part.cancel()


def _record_threads() -> None:
    """Keep each thread that is made from now on, until it has ended."""
    thread_class: Any = sys.modules[_THREADS].Thread
    make = thread_class.__init__
    if hasattr(make, "__wrapped__"):
        return

    @wraps(make)
    def make_and_keep(thread: Any, *args: Any, **settings: Any) -> None:
        make(thread, *args, **settings)
        _alive[thread] = None
        thread.link(_alive.pop)

    thread_class.__init__ = make_and_keep


def _running(thread: Any) -> str:
    """Return the name of the function that a thread was made for."""
    name = getattr(thread._function, "__qualname__", type(thread._function).__name__)
    return str(name) if thread else f"{name}, which has not begun"
