"""The simulator's exception for mistakes of users."""

from __future__ import annotations

from common.errors import KnotlessError


class SimulationError(KnotlessError):
    """A simulation with invalid parameters, or one that does not fit into memory."""
