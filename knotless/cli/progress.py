"""Progress bars of commands, and the handling of SIGTERM."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from knotless.base.printable import rich_text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

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
        self._shown: tuple[Progress, TaskID] | None = None
        self._timer: threading.Timer | None = None
        # Without a terminal Rich prints an empty line, even if it has nothing to print.
        if not sys.stderr.isatty():
            return
        bar = _progress(counted=counted, transient=transient)
        self._shown = bar, bar.add_task(description, total=total)
        if patient:
            self._timer = threading.Timer(PATIENCE_S, bar.start)
            self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.start()
        elif self._shown is not None:
            self._shown[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._shown is not None:
            self._shown[0].stop()

    def update(self, **what: Any) -> None:
        """Change ``total``, ``description`` or ``completed``, or ``advance`` by steps."""
        if self._shown is not None:
            bar, task = self._shown
            bar.update(task, **what)


def _progress(*, counted: bool, transient: bool) -> Progress:
    from rich import progress  # takes longer to load than most commands run
    from rich.console import Console

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        *((progress.MofNCompleteColumn(),) if counted else ()),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=transient,
    )


@contextmanager
def spinner(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is done now, which the value of the block changes.

    It is on standard error. What begins with ``removed`` stays on the screen.
    """
    from rich.console import Console

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
