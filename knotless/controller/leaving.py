"""How the controller ends when it is told to."""

from __future__ import annotations

import os


def leave(_signal: int, _frame: object) -> None:
    """Exit at once: there is nothing to save, and the switches keep their rules.

    The signal may have interrupted a write to the log. Whoever flushed the log here could wait for
    a lock that only the interrupted code can release, or would get an error that is then logged:
    the signal would have no effect. Nothing is lost: each line is flushed when it is written.
    """
    os._exit(0)
