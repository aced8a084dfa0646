"""The exception of sweeps for mistakes of users."""

from __future__ import annotations

from common.errors import KnotlessError


class SweepError(KnotlessError):
    """An invalid grid, a folder with another grid, or missing workers."""
