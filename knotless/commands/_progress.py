"""How long commands show that they go on, and how they are told to end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Bar:
    """A progress bar on standard error with the time left, where somebody may be looking.

    ``counted`` bars show steps done of ``total``; ``transient`` ones go away at their end.
    """

    def __init__(
        self,
        description: str = "",
        total: float | None = None,
        *,
        counted: bool = True,
        transient: bool = False,
    ) -> None:
        count = (MofNCompleteColumn(),) if counted else ()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            *count,
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=transient,
        )
        self._task = self._bar.add_task(description, total=total)
        # Rich prints an empty line where nobody is looking, even when told to print nothing.
        self._seen = sys.stderr.isatty()

    def __enter__(self) -> Self:
        if self._seen:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._seen:
            self._bar.stop()

    def update(self, **what: Any) -> None:
        """Change ``total``, ``description`` or ``completed``, or ``advance`` by some steps."""
        self._bar.update(self._task, **what)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM end what is done within as Ctrl-C would: tidied up, with all that is known."""
    former = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
