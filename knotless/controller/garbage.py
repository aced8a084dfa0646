"""When Python looks for garbage: not while switches wait for new routes.

A collection takes milliseconds, and is due exactly when the objects of a change have been made.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

LONGEST_S = 1.0
"""A change that takes longer has other reasons than garbage."""


class Garbage:
    """Puts collections off; ``later`` calls a function after some seconds."""

    def __init__(self, later: Callable[[float, Callable[[], None]], Any]) -> None:
        self._later = later
        self._put_off = 0

    def put_off(self) -> None:
        """Collect nothing until :meth:`collect`, or for :data:`LONGEST_S`."""
        gc.disable()
        self._put_off += 1
        mine = self._put_off

        def end() -> None:
            if self._put_off == mine:
                gc.enable()

        self._later(LONGEST_S, end)

    def collect(self) -> None:
        """Collect from now on, when it is due."""
        gc.enable()
