"""Hosts that exceed the limit of their broadcasts, as text for people. Pure functions.

Frames to multicast groups that are not declared count as broadcasts: switches send both to all
hosts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from knotless._core.simulator import BROADCAST_SHARE
from knotless.base.errors import KnotlessError
from knotless.base.model_limits import MAX_BYTES

BROADCAST_LIMIT = "broadcast_limit"
"""The cause for which broadcasts beyond the limit are dropped; they are not lost frames."""
LEAST_BURST_BYTES = 1542
"""The longest frame of 1,500 bytes of payload, with the gap behind it: less would let none pass."""
MOST_BURST_BYTES = MAX_BYTES


def check_limit(share: float, burst_bytes: int) -> None:
    """Raise :class:`KnotlessError` if a limit of broadcasts is not possible.

    Parameters
    ----------
    share : float
        The share of its line that a host may fill with them, 0 to 1; 0 is no limit.
    burst_bytes : int
        How many bytes, gaps between frames included, may come at once.

    """
    if not (math.isfinite(share) and 0 <= share <= 1):
        raise KnotlessError(f"broadcast limit: {share:g} of the line is not in 0..1")
    if not LEAST_BURST_BYTES <= burst_bytes <= MOST_BURST_BYTES:
        raise KnotlessError(
            f"broadcast burst: {burst_bytes} bytes are not in"
            f" {LEAST_BURST_BYTES}..{MOST_BURST_BYTES}"
        )


def over_limit(host: str, frames: int, share: float) -> str:
    """Return the problem of a host with ``frames`` frames over its limit; share 0: no limit."""
    end = "they were dropped" if share else "no limit is set, they slow other hosts down"
    limit = 100 * (share or BROADCAST_SHARE)
    return (
        f"host {host} fills over {limit:.4g} % of its line with broadcasts and frames to undeclared"
        f" multicast groups: {frames} frames over, {end}"
    )


def problems(status: Mapping[str, Any]) -> list[str]:
    """Return a line for each host that has exceeded its limit lately.

    ``status`` is the emulator's (docs/emulator-protocol.md, ``broadcasting_hosts``).
    """
    return [
        over_limit(host["host"], host["frames"], host["share"] if host["limited"] else 0.0)
        for host in status.get("broadcasting_hosts", ())
    ]
