"""The hub: it calls functions when they are due, or when a file descriptor is ready.

Its greenlet is the parent of all green threads. A thread that waits has the hub call something
later, and switches to it. Nothing else runs until then: a controller has one hub, in one thread of
the system. (A thread that waits outside of it has a hub of its own.)
"""

from __future__ import annotations

import heapq
import importlib
import itertools
import logging
import signal
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

from greenlet import getcurrent, greenlet

_LOG = logging.getLogger("knotless.controller")
_CHUNK_BYTES = 4096
_MANY_TIMERS = 1000


def unpatched(name: str) -> Any:
    """Return a module of the standard library without Eventlet's changes, if it has made any."""
    patcher = sys.modules.get("eventlet.patcher")
    return importlib.import_module(name) if patcher is None else patcher.original(name)


_select, _socket, _time = map(unpatched, ("select", "socket", "time"))


class Call:
    """A call that a hub has been asked for: ``function``, None if it is over or canceled."""

    __slots__ = ("_canceled", "args", "events", "function")

    def __init__(
        self, canceled: Callable[[Call], object], function: Callable[..., object], *args: object
    ) -> None:
        self._canceled = canceled
        self.function: Callable[..., object] | None = function
        self.args, self.events = args, 0

    def cancel(self) -> None:
        """Have it not called any more; nothing if it is over."""
        if self.function is not None:
            self.function, self.args = None, ()
            self._canceled(self)


class Hub(ABC):
    """The operations from which all waiting is made."""

    @property
    @abstractmethod
    def greenlet(self) -> Any:
        """The greenlet that calls; it must not wait."""

    @abstractmethod
    def call_later(self, seconds: float, function: Callable[..., object], *args: object) -> Any:
        """Call a function once, after some time; 0: when what is due already has been called.

        The result has ``cancel()``, as that of :meth:`watch`.
        """

    @abstractmethod
    def watch(self, descriptor: int, function: Callable[[], object], *, writing: bool) -> Call:
        """Call a function each time that a descriptor can be read, or written; errors are both.

        To be canceled before the descriptor is closed.
        """

    def switch(self) -> Any:
        """Let others run until something switches to the current greenlet again."""
        return self.greenlet.switch()

    @cached_property
    def inbox(self) -> Inbox:
        """Calls by others than the hub's own thread, to which it must be given."""
        return Inbox(self)


class Inbox:
    """Calls for a hub by other threads of the system, and by handlers of signals."""

    def __init__(self, hub: Hub) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self._sleeper, self._waker = _socket.socketpair()
        self._sleeper.setblocking(False)
        self._waker.setblocking(False)
        hub.watch(self._sleeper.fileno(), self._call_all, writing=False)
        # Otherwise a signal that comes just before the hub sleeps would be handled after that.
        with suppress(ValueError):  # not the main thread
            signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)

    def call(self, function: Callable[[], object]) -> None:
        """Have the hub call a function soon."""
        self._calls.append(function)
        # What is not read yet, and fills the buffer, is enough to wake it up.
        with suppress(BlockingIOError):
            self._waker.send(b"!")

    def _call_all(self) -> None:
        with suppress(BlockingIOError):
            self._sleeper.recv(_CHUNK_BYTES)
        while self._calls:
            self._calls.popleft()()


class SelectorHub(Hub):
    """A hub of our own: timers in a heap, and descriptors in epoll(7)."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = _time.monotonic
        self.timers: list[tuple[float, int, Call]] = []
        self.watches: dict[int, list[Call]] = {}
        self._order = itertools.count()
        self._canceled = 0
        self._epoll = _select.epoll()
        root = getcurrent()
        while root.parent is not None:
            root = root.parent
        self._greenlet = greenlet(self._run, root)

    @property
    def greenlet(self) -> Any:
        """The greenlet of the loop."""
        if self._greenlet.dead:  # KeyboardInterrupt has gone through it
            new = greenlet(self._run, self._greenlet.parent)
            self._greenlet.parent = new  # that of threads which still have it as their parent
            self._greenlet = new
        return self._greenlet

    def call_later(self, seconds: float, function: Callable[..., object], *args: object) -> Call:
        """See Hub."""
        timer = Call(self._timer_canceled, function, *args)
        heapq.heappush(self.timers, (self.clock() + seconds, next(self._order), timer))
        return timer

    def _timer_canceled(self, _timer: Call) -> None:
        """Free canceled timers, once they are the most."""
        self._canceled += 1
        if self._canceled > max(_MANY_TIMERS, len(self.timers) // 2):
            self.timers[:] = [entry for entry in self.timers if entry[2].function is not None]
            heapq.heapify(self.timers)
            self._canceled = 0

    def watch(self, descriptor: int, function: Callable[[], object], *, writing: bool) -> Call:
        """See Hub."""

        def canceled(watch: Call) -> None:
            others = [each for each in self.watches[descriptor] if each is not watch]
            self._set_watches(descriptor, others)

        watch = Call(canceled, function)
        watch.events = _select.EPOLLOUT if writing else _select.EPOLLIN
        self._set_watches(descriptor, [*self.watches.get(descriptor, ()), watch])
        return watch

    def _set_watches(self, descriptor: int, watches: list[Call]) -> None:
        if not watches:
            self._epoll.unregister(descriptor)
            del self.watches[descriptor]
            return
        events = 0
        for watch in watches:
            events |= watch.events
        change = self._epoll.modify if descriptor in self.watches else self._epoll.register
        change(descriptor, events)
        self.watches[descriptor] = watches

    def _run(self, *_: object) -> None:
        """Call what is due, for ever: control also comes here when a thread ends."""
        while True:
            # What is due at once, and was not before, comes after the descriptors.
            limit = (self.clock(), next(self._order))
            while self.timers and self.timers[0] < limit:
                timer = heapq.heappop(self.timers)[2]
                function, args = timer.function, timer.args
                timer.function, timer.args = None, ()
                if function is None:
                    self._canceled -= 1
                else:
                    self._call(function, *args)
            next_s = self.timers[0][0] - self.clock() if self.timers else None
            self.wait(None if next_s is None else max(0.0, next_s))

    def wait(self, seconds: float | None) -> None:
        """Wait until descriptors are ready, but not longer, and call what watches them."""
        for descriptor, events in self._epoll.poll(seconds):
            is_broken = events & (_select.EPOLLERR | _select.EPOLLHUP)
            for watch in self.watches.get(descriptor, ()):
                if watch.function is not None and (is_broken or events & watch.events):
                    self._call(watch.function)

    def _call(self, function: Callable[..., object], *args: object) -> None:
        try:
            function(*args)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - also a panic of the core; others go on
            _LOG.exception("a call of the hub has failed")


_chosen = unpatched("threading").local()


def current() -> Hub:
    """Return the hub of the thread of the system that calls: ours, if none has been chosen."""
    hub: Hub | None = getattr(_chosen, "hub", None)
    if hub is None:
        hub = _chosen.hub = SelectorHub()
    return hub


def use(hub: Hub | None) -> Hub | None:
    """Make this the hub of the thread, before anything waits in it; return the one that was it."""
    before: Hub | None = getattr(_chosen, "hub", None)
    _chosen.hub = hub
    return before
