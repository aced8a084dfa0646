"""A hub in simulated time: it switches between green threads, and moves the clock.

Time passes only from one timer to the next. A timer that is due at once fires after some
microseconds that are drawn for it, so that ready threads run in any order.
"""

from __future__ import annotations

import heapq
import zlib
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import greenlet

from knotless.controller.green import hub as hubs
from knotless.controller.green.hub import Call, Hub

Part = int | str
_MASK = (1 << 61) - 1
READY_S = 20e-6
"""A thread that is ready runs within this time."""


def number(part: Part) -> int:
    """Return a number for a part of an identity, the same in every process."""
    return part if isinstance(part, int) else _number_of(part)


@cache
def _number_of(text: str) -> int:
    return zlib.crc32(text.encode())


class Draws:
    """Numbers that follow from a seed and the identity of an event."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._counts: dict[tuple[int, ...], int] = defaultdict(int)

    def share(self, *identity: Part) -> float:
        """Return a number from 0 to 1, another one each time for the same identity."""
        key = tuple(map(number, identity))
        self._counts[key] += 1
        # The hash of a tuple of numbers does not depend on PYTHONHASHSEED.
        return (hash((self._seed, self._counts[key], key)) & _MASK) / _MASK

    def between(self, low: float, high: float, *identity: Part) -> float:
        """Return a number between two others."""
        return low + (high - low) * self.share(*identity)

    def below(self, count: int, *identity: Part) -> int:
        """Return a whole number from 0 to ``count`` - 1."""
        return min(count - 1, int(self.share(*identity) * count))


class Process:
    """A process of the world: one controller, or all that is outside (``name`` is empty)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.hangs_until_s = 0.0


class SimulatedHub(Hub):
    """The hub of one run; the greenlet that made it is the one that waits for the others."""

    def __init__(self, draws: Draws, start_s: float) -> None:
        self.now_s = start_s
        self.outside = self.current = Process("")
        self._greenlet = greenlet.greenlet(self._run)
        self._draws = draws
        self._queue: list[tuple[float, int, Call, Process]] = []
        self._scheduled = 0
        self._names: dict[int, tuple[greenlet.greenlet, int, Process]] = {}
        """By id of a greenlet: itself, its name (who spawned it, what it runs, how often), and the
        process that runs it."""
        self.failures: list[BaseException] = []
        """Exceptions of callbacks that nobody has handled."""
        self.fired = 0
        self._is_over = False
        self._before: Hub | None = None

    @property
    def greenlet(self) -> Any:
        """The greenlet that fires timers."""
        return self._greenlet

    # --- who is who --------------------------------------------------------------------------

    def name_of(self, thread: Any) -> int:
        """Return the name of a green thread: a number that is the same in every run."""
        named = self._names.get(id(thread))
        return 0 if named is None else named[1]

    def _begin(self, thread: Any, function: str) -> None:
        parent = self.name_of(greenlet.getcurrent())
        times = self._draws.share("thread", parent, number(self.current.name), function)
        name = hash((parent, number(function), int(times * _MASK)))
        self._names[id(thread)] = (thread, name, self.current)
        if hasattr(thread, "link"):
            thread.link(self._forget)

    def _forget(self, thread: Any) -> None:
        self._names.pop(id(thread), None)

    def threads(self, process: Process) -> int:
        """Return how many green threads of a process have not ended."""
        named = self._names.values()
        return sum(owner is process and not thread.dead for thread, _, owner in named)

    # --- timers ------------------------------------------------------------------------------

    def call_later(self, seconds: float, function: Callable[..., object], *args: object) -> Call:
        """Schedule a call for the current process."""
        return self.schedule(seconds, function, args, Call(_nothing, function, *args))

    def schedule(
        self,
        seconds: float,
        function: Callable[..., object],
        args: tuple[object, ...],
        call: Call,
    ) -> Call:
        """Schedule a call of the current process, which calls ``function`` in the end."""
        thread = getattr(function, "__self__", None)
        if (
            isinstance(thread, greenlet.greenlet)
            and id(thread) not in self._names
            and thread.parent is self._greenlet
            and not thread
        ):
            begun = args[0] if args else getattr(thread, "_function", None)
            self._begin(thread, getattr(begun, "__qualname__", ""))
        what = getattr(function, "__qualname__", type(function).__name__)
        identity = ("timer", self.name_of(greenlet.getcurrent()), self.current.name, what)
        later_s = READY_S * self._draws.share(*identity)
        self._push(self.now_s + max(0.0, seconds) + later_s, call)
        return call

    def _push(self, when_s: float, call: Call, process: Process | None = None) -> None:
        self._scheduled += 1
        heapq.heappush(self._queue, (when_s, self._scheduled, call, process or self.current))

    def call_at(
        self, when_s: float, process: Process, function: Callable[..., object], *args: object
    ) -> Call:
        """Call a function at a time, on behalf of a process, unless that has ended by then."""
        call = Call(_nothing, function, *args)
        self._push(max(when_s, self.now_s), call, process)
        return call

    def _run(self, *_: object) -> None:
        """Fire timers as long as there are any."""
        while self._queue:
            when_s, _order, call, process = heapq.heappop(self._queue)
            if call.function is None or not process.is_alive:
                continue
            if when_s < process.hangs_until_s:
                # What became ready meanwhile goes on in the same order.
                self._push(process.hangs_until_s, call, process)
                continue
            self.now_s = max(self.now_s, when_s)
            self.current = process
            self.fired += 1
            function, call.function = call.function, None
            try:
                function(*call.args)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - the run fails with it
                self.failures.append(error)
            self.current = self.outside

    def watch(self, *_: object, **__: object) -> Call:
        """Never called: there are no descriptors."""
        raise NotImplementedError

    def sleep_outside(self, seconds: float) -> None:
        """Let the world go on for some time; called by the greenlet that made the hub."""
        self.call_at(self.now_s + seconds, self.outside, greenlet.getcurrent().switch)
        self.switch()

    def leave_for_ever(self) -> None:
        """Never return: the process that runs has ended."""
        self.switch()

    # --- for the whole run -------------------------------------------------------------------

    def use(self) -> None:
        """Make this the hub of the process, in place of its own, which :meth:`end` gives back."""
        self._before = hubs.use(self)

    def switch(self) -> Any:
        """Let others run; see Hub. At the end nobody waits for anything any more."""
        if self._is_over:
            raise greenlet.GreenletExit
        return super().switch()

    def end(self) -> None:
        """End all threads, which would end at any time later, when their memory is freed."""
        self._is_over = True
        self._queue.clear()
        for thread, *_ in list(self._names.values()):
            if thread and not thread.dead:
                thread.parent = greenlet.getcurrent()
                with suppress(BaseException):
                    thread.throw(greenlet.GreenletExit)
        self._queue.clear()
        hubs.use(self._before)


def _nothing(_call: Call) -> None:
    """Leave a canceled call where it is; it does nothing when it is due."""
