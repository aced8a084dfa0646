"""The memory that explicit paths need, estimated before any of it is allocated."""

from __future__ import annotations

from knotless.base.errors import PlanError
from knotless.base.memory import SMALL_BYTES, Cost, free_bytes, gib


def max_hops(bound: int) -> int:
    """Return how many channels all paths together may have, if they have at most ``bound``."""
    if bound * Cost.HOP.each_bytes <= SMALL_BYTES:
        return bound
    return free_bytes() // Cost.HOP.each_bytes


def too_long(sources: int, switches: int, longest: int) -> PlanError:
    """Return the error for paths that would need too much memory."""
    needed = Cost.HOP.bytes_for(sources * switches * longest)
    return PlanError(
        f"the paths from {sources} sources to {switches} switches, of up to {longest} channels,"
        f" take about {gib(needed)} when written out, {gib(free_bytes())} are free;"
        " this can be done on smaller fabrics only"
    )
