"""The simulator's own kind of user's mistake."""

from __future__ import annotations

from common.errors import KnotlessError


class SimulationError(KnotlessError):
    """A simulation that makes no sense, or that would not fit into this machine."""
