"""Progress bars of commands, and the handling of SIGTERM."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from knotless.base.printable import rich_text

PATIENCE_S = 1.5
"""Time before a patient bar appears."""


class Bar:
    """A progress bar on standard error with the remaining time, shown on terminals only.

    ``counted`` bars show completed steps of ``total``; ``transient`` ones disappear at the end.
    ``patient`` ones appear only if the work takes long: most of it is done at once.
    """

    def __init__(
        self,
        description: str = "",
        total: float | None = None,
        *,
        counted: bool = True,
        transient: bool = False,
        patient: bool = False,
    ) -> None:
        count = (MofNCompleteColumn(),) if counted else ()
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            *count,
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=transient,
        )
        self._task = self._bar.add_task(description, total=total)
        # Without a terminal Rich prints an empty line, even if it has nothing to print.
        self._seen = sys.stderr.isatty()
        self._timer = threading.Timer(PATIENCE_S, self._bar.start) if patient else None

    def __enter__(self) -> Self:
        if self._seen and self._timer is None:
            self._bar.start()
        elif self._seen and self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._seen:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        self._bar.stop()

    def update(self, **what: Any) -> None:
        """Change ``total``, ``description`` or ``completed``, or ``advance`` by steps."""
        self._bar.update(self._task, **what)


@contextmanager
def spinner(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is done now, which the value of the block changes.

    It is on standard error. What begins with ``removed`` stays on the screen.
    """
    console = Console(stderr=True, quiet=quiet)
    with console.status(rich_text(text)) as status:

        def show(step: str) -> None:
            if step.startswith("removed"):
                console.print(rich_text(step))
            status.update(rich_text(step))

        yield show


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Handle SIGTERM in the block like Ctrl-C, so that results so far are kept."""
    former = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
