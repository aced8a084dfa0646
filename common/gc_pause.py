"""Python's cycle collector, held up while many small values are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Do not look for cycles of garbage: for code that makes millions of values and no cycle.

    The collector walks all that there is whenever enough has been added: measured, that is half
    of what compiling takes, and two thirds with a hundred thousand rules.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
