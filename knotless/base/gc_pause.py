"""Suspension of Python's cyclic garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable the garbage collector, for code that creates millions of objects and no cycles.

    The collector scans all objects each time enough new ones exist. This takes half of the time of
    compiling rules, and two thirds for a hundred thousand rules.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
