"""Virtual time in the unit of the simulator."""

from __future__ import annotations

PICOSECONDS_PER_US = 1_000_000


def picoseconds(time_us: float) -> int:
    """Return a time in picoseconds."""
    return round(time_us * PICOSECONDS_PER_US)
