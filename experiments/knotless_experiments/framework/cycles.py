"""Cycles of channels in rows."""

from __future__ import annotations

from collections.abc import Sequence


def from_first(cycle: Sequence[str]) -> list[str]:
    """Return a cycle from its first channel by name on."""
    place = cycle.index(min(cycle)) if cycle else 0
    return [*cycle[place:], *cycle[:place]]
