"""The sweep's own kind of user's mistake."""

from __future__ import annotations

from common.errors import KnotlessError


class SweepError(KnotlessError):
    """A grid that makes no sense, a folder that holds another one, or no workers."""
