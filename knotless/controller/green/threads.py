"""Green threads and what they wait for each other by: events, locks, queues and limits of time."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from knotless.controller.green import hub as hubs

Item = TypeVar("Item")
Result = TypeVar("Result")
_LOG = logging.getLogger("knotless.controller")


class TimeLimitError(TimeoutError):
    """An operation did not end within its time limit."""


class Wait:
    """One wait of the green thread that makes it. It ends once, by what comes first.

    If the thread is killed, or exceeds a limit of time, before it goes on, it does not go on: what
    has ended the wait wakes it from no later one.
    """

    __slots__ = ("_thread",)

    def __init__(self) -> None:
        self._thread: Any = getcurrent()

    def until_end(
        self, seconds: float | None = None, switch: Callable[[], object] | None = None
    ) -> bool:
        """Wait until :meth:`end` or :meth:`resume`; False: they did not come within this time.

        ``switch`` lets others run, None: the hub.
        """
        hub = hubs.current()
        limit = None if seconds is None else hub.call_later(seconds, self._go_on, False)
        try:
            return bool((switch or hub.switch)())
        finally:
            self._thread = None
            if limit is not None:
                limit.cancel()

    def end(self) -> None:
        """Have the thread go on soon."""
        hubs.current().call_later(0, self.resume)

    def resume(self) -> None:
        """Let the thread go on at once; for the hub's greenlet."""
        self._go_on(True)

    def _go_on(self, is_ended: bool) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.switch(is_ended)


def sleep(seconds: float) -> None:
    """Let other green threads run for this time; 0: once around."""
    Wait().until_end(max(0.0, seconds))


class Event:
    """A condition that green threads wait for."""

    def __init__(self) -> None:
        self._is_set = False
        self._waits: dict[Wait, None] = {}

    def is_set(self) -> bool:
        """Return whether it has been set, and not cleared since."""
        return self._is_set

    def set(self) -> None:
        """Have all that wait go on, and nobody wait any more."""
        self._is_set = True
        waits, self._waits = self._waits, {}
        for wait in waits:
            wait.end()

    def clear(self) -> None:
        """Have those wait that come from now on."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; False: it was not within this time."""
        if self._is_set:
            return True
        wait = Wait()
        self._waits[wait] = None
        try:
            return wait.until_end(timeout) or self._is_set
        finally:
            self._waits.pop(wait, None)


class Lock:
    """Held by one green thread at a time, in a ``with`` statement; first come, first served."""

    def __init__(self) -> None:
        self._is_held = False
        self._waits: deque[Wait] = deque()

    def __enter__(self) -> None:
        if not self._is_held:
            self._is_held = True
            return
        wait = Wait()
        self._waits.append(wait)
        try:
            wait.until_end()
        except BaseException:
            if wait in self._waits:
                self._waits.remove(wait)
            else:
                self.__exit__()  # it has been handed over already
            raise

    def __exit__(self, *_: object) -> None:
        if self._waits:
            self._waits.popleft().end()
        else:
            self._is_held = False


class Queue:
    """A queue of at most ``size`` items, or of any number, between green threads."""

    def __init__(self, size: int | None = None) -> None:
        self._items: deque[object] = deque()
        self._size = size
        self._arrived = Event()

    def put(self, item: object) -> bool:
        """Add an item; False: the queue is full."""
        if self._size is not None and len(self._items) >= self._size:
            return False
        self._items.append(item)
        self._arrived.set()
        return True

    def get(self, seconds: float) -> Any:
        """Wait for the next item and return it; raises TimeLimitError if none has come in time."""
        while not self._items:
            self._arrived.clear()
            if not self._arrived.wait(seconds):
                raise TimeLimitError(f"nothing within {seconds:g} s")
        return self._items.popleft()


# --- threads -----------------------------------------------------------------------------------


class Thread(greenlet):  # type: ignore[misc]
    """A green thread, which begins after some time.

    An exception ends it and is logged; KeyboardInterrupt and SystemExit end the process.
    """

    def __init__(
        self, function: Callable[..., object], args: Iterable[object], seconds: float = 0.0
    ) -> None:
        hub = hubs.current()
        super().__init__(self._main, hub.greenlet)
        self._function, self._args = function, args
        self._result: object = None
        self._links: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._ended = Event()
        self._beginning = hub.call_later(seconds, self.switch)

    def _main(self, *_: object) -> None:
        try:
            self._result = self._function(*self._args)
        except GreenletExit:
            pass
        except Exception:  # noqa: BLE001 - others go on
            _LOG.exception("a green thread has ended")
        finally:
            self._args = ()
            self._ended.set()
            while self._links:
                function, args = self._links.popleft()
                function(self, *args)

    def link(self, function: Callable[..., object], *args: object) -> None:
        """Call a function with the thread, and ``args``, when it has ended, or now if it has."""
        if self._ended.is_set():
            function(self, *args)
        else:
            self._links.append((function, args))

    def wait(self) -> Any:
        """Wait until it has ended; return what its function has returned, if it has."""
        self._ended.wait()
        return self._result

    def kill(self) -> None:
        """End the thread, by GreenletExit where it waits; one that has not begun never does.

        Returns when it has ended, or waits again.
        """
        here, hub = getcurrent(), hubs.current()
        if self is here:
            raise GreenletExit
        if self.dead:
            return
        self._beginning.cancel()
        if not self:
            self._function, self._args = lambda: None, ()
        end = self.throw if self else self.switch
        if here is hub.greenlet:  # control comes back to it anyway
            end()
            return
        wait = Wait()
        wait.end()
        wait.until_end(switch=end)

    def cancel(self) -> None:
        """End the thread if it has not begun."""
        if not self and not self.dead:
            self.kill()


def join(threads: Iterable[Thread]) -> None:
    """Wait until all of these green threads have ended."""
    for thread in threads:
        thread.wait()


Outcome = tuple[Any, Exception | None]
"""What a function has returned and None, or None and what it has raised."""


def outcome_of(function: Callable[..., object], *args: object) -> Outcome:
    """Return the outcome of a call."""
    try:
        return function(*args), None
    except Exception as error:  # noqa: BLE001 - raised where it is waited for
        return None, error


def result_of(outcome: Outcome) -> Any:
    """Return what was returned, or raise what was raised."""
    result, error = outcome
    if error is not None:
        raise error
    return result


def together(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return the results of a function, called for each item in a green thread of its own.

    Raises what it has raised for the first item for which it has.
    """
    threads = [Thread(outcome_of, (function, item)) for item in items]
    return [result_of(thread.wait()) for thread in threads]


class _Limit(BaseException):
    """A time limit has passed: nothing inside may take it for an error."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit what runs inside.

    Raises
    ------
    TimeLimitError
        It has not ended after so many seconds.

    """
    limit = _Limit()
    timer = hubs.current().call_later(seconds, getcurrent().throw, limit)
    try:
        yield
    except _Limit as passed:
        if passed is not limit:
            raise
        raise TimeLimitError(f"not done within {seconds:g} s") from None
    finally:
        timer.cancel()
        del limit  # its traceback holds this frame: only the garbage collector would free both
