"""Limits by kind of fault: when all is served again, and what a controller says meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """The limit of a kind of fault.

    After ``served_after_s`` from its beginning or its end, all that is connected must be served.
    """

    served_after_s: float = 3.0


_RECONNECTS = Limit(5.0)
"""A switch connects again within a second, and is read and changed."""
_UNSEEN = Limit(10.0)
"""The end of a connection that was not seen is found by echo requests."""
LIMITS: Mapping[str, Limit] = {
    **dict.fromkeys(("disconnect", "kill", "kill-at-message", "kill-at-write"), _RECONNECTS),
    **dict.fromkeys(("lose-at-switch", "lose-at-controller"), _UNSEEN),
    **dict.fromkeys(("restart", "restart-with-rules", "hang"), _UNSEEN),
    "part": Limit(20.0),
    "mute": Limit(15.0),
}
OTHER = Limit()
"""The limit of other kinds."""


def limit_of(kind: str) -> Limit:
    """Return the limit of a kind of fault."""
    return LIMITS.get(kind, OTHER)
