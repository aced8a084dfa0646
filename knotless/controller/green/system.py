"""Threads of the system, and signals, which green threads wait for."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from typing import TypeVar

from knotless.base.errors import fault
from knotless.controller.green import hub as hubs
from knotless.controller.green.threads import Event, Outcome, Wait, outcome_of, result_of

Result = TypeVar("Result")


def in_thread(function: Callable[..., Result], *args: object) -> Result:
    """Return what a function returns, called in a thread of the system; green threads go on.

    What the function raises is raised here; FaultError in place of what would end the thread, such
    as SystemExit from an engine of a user.
    """
    inbox, wait = hubs.current().inbox, Wait()
    outcomes: list[Outcome] = []

    def work() -> None:
        outcomes.append(outcome_of(_without_exit, function, *args))
        inbox.call(wait.resume)

    # The process does not wait for it when it ends.
    hubs.unpatched("threading").Thread(target=work, daemon=True).start()
    wait.until_end()
    result: Result = result_of(outcomes.pop())
    return result


def _without_exit(function: Callable[..., Result], *args: object) -> Result:
    try:
        return function(*args)
    except Exception:
        raise
    except BaseException as error:
        raise fault("a computation", error) from error


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
