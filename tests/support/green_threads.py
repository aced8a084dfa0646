"""Green threads and timers that go on in the test process: Eventlet's hub is one for all tests.

What a test leaves would slow down all later ones, and log in the middle of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Set
from functools import wraps
from typing import Any

_PERMANENT = frozenset({"tpool_trampoline"})
"""What Eventlet itself starts once: its thread that takes the results of system threads."""
_CALLERS = ("GreenThread.main", "_run")
"""Functions of Eventlet and ``runtime`` that call the one for which a thread was made."""
_alive: dict[Any, None] = {}
"""Green threads that were made since :func:`going_on` was first called, and may go on."""


def left_since(before: Set[Any]) -> dict[Any, str]:
    """Return what goes on and did not before; what is due at once comes to its end first."""
    if not going_on().keys() - before:
        return {}
    sys.modules["eventlet"].sleep(0)
    return {part: name for part, name in going_on().items() if part not in before}


def going_on() -> dict[Any, str]:
    """Return what goes on now: green threads, timers and waits for sockets, with their names.

    Eventlet is not imported for that.
    """
    eventlet = sys.modules.get("eventlet")
    hub: Any = getattr(getattr(eventlet, "hubs", None), "_threadlocal", None)
    hub = getattr(hub, "hub", None)
    if "eventlet.greenthread" in sys.modules:  # also before there is a hub
        _record_threads()
    if hub is None:
        return {}
    found: dict[Any, str] = {thread: _running(thread) for thread in _alive if thread}
    for _, timer in (*hub.timers, *hub.next_timers):
        if timer.called:
            continue
        function, args, _ = timer.tpl
        thread = getattr(function, "__self__", None)
        if getattr(thread, "dead", False):
            continue
        if hasattr(thread, "gr_frame"):
            found[thread] = _running(thread) or f"{_named(args)}, which has not begun"
        else:
            found[timer] = f"a timer for {_named((function,))}"
    for listener in (each for bucket in hub.listeners.values() for each in bucket.values()):
        thread = getattr(listener.cb, "__self__", listener)
        found.setdefault(thread, _running(thread))
    for thread in [thread for thread in _alive if thread not in found]:
        del _alive[thread]  # it has not begun, and without a timer it never will
    return {part: name for part, name in found.items() if name not in _PERMANENT}


def end(parts: Iterable[Any]) -> None:
    """End green threads and timers."""
    from eventlet import greenthread  # it is loaded if there are any

    for part in parts:
        if hasattr(part, "gr_frame"):
            greenthread.kill(part)
        elif hasattr(part, "cancel"):
            part.cancel()


def _record_threads() -> None:
    """Keep each thread that is made from now on, until it has ended."""
    thread_class: Any = sys.modules["eventlet.greenthread"].GreenThread
    make = thread_class.__init__
    if hasattr(make, "__wrapped__"):
        return

    @wraps(make)
    def make_and_keep(thread: Any, *args: Any) -> None:
        make(thread, *args)
        _alive[thread] = None
        thread.link(_alive.pop)

    thread_class.__init__ = make_and_keep


def _running(thread: Any) -> str:
    """Return the name of the function that a thread was made for; empty if it has not begun."""
    frame, name = getattr(thread, "gr_frame", None), ""
    while frame is not None:
        if frame.f_code.co_qualname not in _CALLERS:
            name = frame.f_code.co_qualname
        frame = frame.f_back
    return name


def _named(args: tuple[Any, ...]) -> str:
    """Return the name of the function that ``runtime`` or Eventlet has been told to call."""
    function, rest = args[0] if args else None, args[1:]
    name = getattr(function, "__qualname__", type(function).__name__)
    return _named(rest[0]) if name == "_run" and rest else str(name)
