"""How much memory written-out paths take, known before any of it is taken."""

from __future__ import annotations

from common.errors import PlanError
from common.memory import SMALL_BYTES, free_bytes, gib

BYTES_A_HOP = 30
"""What an engine takes for a channel of a path, and what is made of it: VLANs and the state.

5 of these are the channel and its priority. Measured: 10 (``updown``) to 35 (``lturn``; tree VLANs
and tagging by hosts).
"""
BYTES_A_PAIR = 26
"""What next hops and broadcast trees take for a pair of switches (``dor`` on torus,64,64)."""


def most_hops(bound: int) -> int:
    """Return how many channels all paths together may have; they have at most ``bound``."""
    if bound * BYTES_A_HOP <= SMALL_BYTES:
        return bound
    return free_bytes() // BYTES_A_HOP


def too_long(sources: int, switches: int, longest: int) -> PlanError:
    """Return the complaint about paths from so many sources, of which the longest is so long."""
    needed = sources * switches * longest * BYTES_A_HOP
    return PlanError(
        f"the paths from {sources} sources to {switches} switches, of up to {longest} channels,"
        f" take about {gib(needed)} when written out, {gib(free_bytes())} are free;"
        " this can be done on smaller fabrics only"
    )
