"""The error of what is measured in real time: a rate of a program, or the time of a ping."""

from __future__ import annotations

import time
from collections.abc import Callable

from knotless.base.errors import KnotlessError
from knotless.emulation.running_fabric import RunningFabric

LEAST_STRETCH = 1.25
"""Stretch below which nothing is said: measurements differ by more."""
LEAST_S = 1.0
"""Real time of a measurement about which nothing is said."""


class RealTimeMeasurement:
    """The pace of virtual time while something is measured by programs in real time.

    Parameters
    ----------
    running : RunningFabric
        The fabric. One whose programs live in virtual time, or without emulator, has no such pace.
    now_s : callable
        Returns real time.

    Attributes
    ----------
    may_be_wrong : bool
        Whether what programs measure depends on the pace.

    """

    def __init__(self, running: RunningFabric, now_s: Callable[[], float] = time.monotonic) -> None:
        self._daemon = running.daemon
        self._now_s = now_s
        self._began_s = now_s()
        self.may_be_wrong = running.links == "emulated" and not running.settings.get(
            "virtual_clock"
        )
        self._virtual_s = self._virtual_time() if self.may_be_wrong else None

    def _virtual_time(self) -> float | None:
        try:
            return float(self._daemon.status()["uptime_s"])
        except KnotlessError:  # the emulator has ended, which what is measured shows
            return None

    def caution(self) -> str | None:
        """Return by how much what was measured until now is wrong; None if it is about right."""
        real_s = self._now_s() - self._began_s
        if self._virtual_s is None or real_s < LEAST_S:
            return None
        if (virtual_s := self._virtual_time()) is None:
            return None
        passed_s = virtual_s - self._virtual_s
        if passed_s <= 0 or (stretch := real_s / passed_s) < LEAST_STRETCH:
            return None
        return (
            f"the fabric ran {stretch:.1f} times slower than real time: rates measured meanwhile"
            f" are {stretch:.1f} times too low, and times too long; with 'knotless up"
            " --virtual-clock' they are right"
        )
