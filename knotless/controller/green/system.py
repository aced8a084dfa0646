"""Threads of the system, and signals, which green threads wait for."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from knotless.base.errors import fault
from knotless.controller.green import hub as hubs
from knotless.controller.green.threads import Event, Wait

Result = TypeVar("Result")
_MAX_THREADS = 20
_jobs: Any = hubs.unpatched("queue").SimpleQueue()
_working, _threads = 0, 0
"""Calls that have not ended, and threads; both change in the thread of the hub only."""


def in_thread(function: Callable[..., Result], *args: object) -> Result:
    """Return what a function returns, called in a thread of the system; green threads go on.

    What the function raises is raised here; FaultError in place of what would end the thread, such
    as SystemExit from an engine of a user.
    """
    global _working, _threads
    inbox, wait = hubs.current().inbox, Wait()
    outcome: list[tuple[Any, Exception | None]] = []

    def ended() -> None:
        global _working
        _working -= 1
        wait.resume()

    def work() -> None:
        try:
            outcome.append((function(*args), None))
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            outcome.append((None, error))
        except BaseException as error:  # noqa: BLE001
            outcome.append((None, fault("a computation", error)))
        inbox.call(ended)

    if _working >= _threads < _MAX_THREADS:
        _threads += 1
        hubs.unpatched("threading").Thread(target=_work, daemon=True).start()
    _working += 1
    _jobs.put(work)
    wait.until_end()
    result, error = outcome.pop()
    if error is not None:
        raise error
    returned: Result = result
    return returned


def _work() -> None:
    while True:
        _jobs.get()()


def signals(number: int) -> Generator[None]:
    """Yield each time after a signal has come, once for several that come meanwhile.

    A handler of a signal may do nothing but wake up the green thread that waits here. When it does
    so no longer, the signal is ignored.
    """
    inbox, received = hubs.current().inbox, Event()
    signal.signal(number, lambda *_: inbox.call(received.set))
    try:
        while True:
            received.wait()
            received.clear()
            yield
    finally:  # nobody waits any more
        signal.signal(number, signal.SIG_IGN)
