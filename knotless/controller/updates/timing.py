"""The times for which a controller waits, and garbage collection that waits for switches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knotless.controller import runtime

COLLECTION_DEFERRED_S = 1.0
"""An update that takes longer has other reasons than garbage collection."""


def _in_thread(function: Callable[..., Any], *args: object) -> Any:
    """Call a function by the runtime of the moment, which tests replace."""
    return runtime.in_thread(function, *args)


@dataclass(frozen=True)
class Timing:
    """The times and helpers by which the controller waits.

    Attributes
    ----------
    execute : calls a function that can take long, while green threads go on.
    counters_interval_s : time between two readings of port counters while packets of older rules
        leave.
    precompute : calls functions that plan ahead, as :meth:`knotless.controller.updates.worker.
        Worker.call` does; None: nothing is planned ahead.
    emulator : control socket of the emulator of a fabric of ours, which is asked instead of port
        counters.
    open_vswitch : directory with the control sockets of the Open vSwitch processes that are told to
        forget their megaflows before that.
    retry_s : time after which is tried again what lacks answers of switches, such as a takeover.
    keep_after_s : time without an update after which the rules of switches are kept.

    """

    execute: Callable[..., Any] = _in_thread
    counters_interval_s: float = 0.05
    precompute: Callable[..., bytes] | None = None
    emulator: Path | None = None
    open_vswitch: Path | None = None
    retry_s: float = 0.5
    keep_after_s: float = 1.0


DEFAULT_TIMING = Timing()


class DeferredCollection:
    """Puts Python's garbage collection off while switches wait for new routes.

    A collection takes milliseconds, and is due exactly when the objects of an update are made.
    """

    def __init__(self, call_later: Callable[[float, Callable[[], None]], Any]) -> None:
        self._call_later = call_later
        self._number = 0

    def put_off(self) -> None:
        """Collect nothing until :meth:`resume`, or for :data:`COLLECTION_DEFERRED_S`."""
        runtime.collect_garbage(enabled=False)
        self._number += 1
        mine = self._number

        def end() -> None:
            if self._number == mine:
                runtime.collect_garbage(enabled=True)

        self._call_later(COLLECTION_DEFERRED_S, end)

    def resume(self) -> None:
        """Collect from now on, when it is due."""
        runtime.collect_garbage(enabled=True)
