"""The memory that explicit paths need, estimated before any of it is allocated."""

from __future__ import annotations

from knotless.base.errors import PlanError
from knotless.base.memory import SMALL_BYTES, free_bytes, gib

BYTES_A_HOP = 30
"""Memory for one channel of a path: the path itself (5), VLANs and the forwarding state.

Measured: 10 (``updown``) to 35 (``lturn``; tree VLANs and tagging by hosts).
"""
BYTES_A_PAIR = 26
"""Memory for a pair of switches: next hops and broadcast trees (measured: ``dor``, torus,64,64)."""


def max_hops(bound: int) -> int:
    """Return how many channels all paths together may have, if they have at most ``bound``."""
    if bound * BYTES_A_HOP <= SMALL_BYTES:
        return bound
    return free_bytes() // BYTES_A_HOP


def too_long(sources: int, switches: int, longest: int) -> PlanError:
    """Return the error for paths that would need too much memory."""
    needed = sources * switches * longest * BYTES_A_HOP
    return PlanError(
        f"the paths from {sources} sources to {switches} switches, of up to {longest} channels,"
        f" take about {gib(needed)} when written out, {gib(free_bytes())} are free;"
        " this can be done on smaller fabrics only"
    )
