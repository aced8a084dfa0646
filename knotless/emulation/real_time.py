"""The error of what is measured in real time: a rate of a program, or the time of a ping."""

from __future__ import annotations

import time
from collections.abc import Callable

from knotless.base.errors import KnotlessError
from knotless.base.printable import listed
from knotless.emulation.running_fabric import RunningFabric
from knotless.emulation.virtual_clock import programs_in_real_time

LEAST_STRETCH = 1.25
"""Stretch below which nothing is said: measurements differ by more."""
LEAST_S = 1.0
"""Real time of a measurement about which nothing is said."""
_SHOWN = 3
"""The programs that are named."""


class RealTimeMeasurement:
    """The pace of virtual time while something is measured by programs in real time.

    Parameters
    ----------
    running : RunningFabric
        The fabric. One without emulator has no such pace.
    now_s : callable
        Returns real time.

    """

    def __init__(self, running: RunningFabric, now_s: Callable[[], float] = time.monotonic) -> None:
        self._running = running
        self._now_s = now_s
        self._began_s = now_s()
        self._follows = bool(running.settings.get("virtual_clock"))
        self._virtual_s = self._virtual_time() if running.links == "emulated" else None
        self._last_seen: list[str] = []
        self._in_real_time: list[str] = []

    def look(self, host: str) -> None:
        """Look for programs on a host that do not follow virtual time, while they run.

        One counts that is there at two looks in a row: it may be about to open the clock's page.
        """
        if self._follows:
            seen = programs_in_real_time(self._running.names, [host])
            self._in_real_time = self._in_real_time or [
                program for program in seen if program in self._last_seen
            ]
            self._last_seen = seen

    def _virtual_time(self) -> float | None:
        try:
            return float(self._running.daemon.status()["uptime_s"])
        except KnotlessError:  # the emulator has ended, which what is measured shows
            return None

    def caution(self) -> str | None:
        """Return by how much what was measured until now is wrong; None if it is about right."""
        real_s = self._now_s() - self._began_s
        if self._virtual_s is None or real_s < LEAST_S:
            return None
        if self._follows and not self._in_real_time:
            return None
        if (virtual_s := self._virtual_time()) is None:
            return None
        passed_s = virtual_s - self._virtual_s
        if passed_s <= 0 or (stretch := real_s / passed_s) < LEAST_STRETCH:
            return None
        slower = f"the fabric ran {stretch:.1f} times slower than real time"
        wrong = f"{stretch:.1f} times too low, and times too long"
        if self._in_real_time:
            programs = listed(self._in_real_time, _SHOWN)
            return f"{slower}: rates are {wrong} if measured by {programs}, without virtual time"
        return (
            f"{slower}: rates measured meanwhile are {wrong}; without --no-virtual-clock"
            " they are right"
        )
