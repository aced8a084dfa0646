"""Settings of switches that emulator and simulator both run, and what is compared of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from knotless.base.switch_settings import SwitchFile
from knotless.simulation import Result
from knotless.simulation.result import STORM_COUNTS, by_channel, by_pool

ALPHA, HEADROOM_POOL = "alpha", "headroom pool"
DWRR, STRICT = "DWRR", "strict and DWRR"
LOSSY, MARKING = "lossy beside lossless", "marking"
PAUSE_FRAMES = "pause frames"
WATCHDOG, LATE_WATCHDOG, ALERT = "watchdog", "late watchdog", "watchdog that alerts"
SIGMAS = 3
"""Marked frames are drawn at random: their numbers may differ by this many standard deviations."""


def _watchdog(action: str, detection_us: int) -> dict[str, Any]:
    """Return a watchdog that polls: then both clocks know storms at the same times."""
    return {
        "detection_us": detection_us,
        "restoration_us": 2 * detection_us,
        "action": action,
        "polling_us": 10_000,
    }


_SHARED: dict[str, Any] = {
    "pools": {"shared": {"side": "ingress", "bytes": 60_000}},
    "ingress": [
        {
            "priorities": list(range(8)),
            "pool": "shared",
            "alpha": 0.5,
            "reserved_bytes": 1522,
        }
    ],
}
_SETTINGS: Mapping[str, dict[str, Any]] = {
    ALPHA: _SHARED,
    HEADROOM_POOL: {
        "pools": {"shared": {"side": "ingress", "bytes": 40_000, "headroom_bytes": 24_000}},
        "ingress": [{**_SHARED["ingress"][0], "headroom_bytes": 6000}],
    },
    DWRR: {
        "scheduler": [{"priorities": [0], "weight": 3}, {"priorities": [1], "weight": 1}],
    },
    STRICT: {
        "scheduler": [
            {"priorities": [3], "strict": True},
            {"priorities": [1], "weight": 2},
            {"priorities": [0, 2], "weight": 1},
        ],
    },
    LOSSY: {
        **_SHARED,
        "lossless": [0],
        "egress": [{"priorities": [1], "limit_bytes": 10_000}],
        "scheduler": [{"priorities": [0], "weight": 9}, {"priorities": [1], "weight": 1}],
    },
    # Pauses of 20 ms on links of 10 Mbit/s, which are repeated after half of that.
    PAUSE_FRAMES: {"pause_frames": {"quanta": 400, "response_us": 300}},
    WATCHDOG: {"watchdog": _watchdog("drop", 50_000)},
    # Later than a knot must persist to be reported by the emulator.
    LATE_WATCHDOG: {"watchdog": _watchdog("drop", 1_000_000)},
    ALERT: {"watchdog": _watchdog("alert", 50_000)},
    MARKING: {
        **_SHARED,
        "ecn": [{"priorities": [0], "kmin_bytes": 3000, "kmax_bytes": 20_000, "pmax": 0.5}],
    },
}


@cache
def settings_named(name: str) -> SwitchFile:
    """Return the settings of this name."""
    return SwitchFile.model_validate(_SETTINGS[name])


@dataclass(frozen=True)
class Inside:
    """The counters inside switches with settings.

    ``marked`` are the frames that were marked, of ``sent``. ``pools`` has for each switch and pool
    the most bytes in use, and the most of its headroom. ``pause_frames`` were sent by switches
    whose pause frames take their place on the wire. ``storms`` has for each channel how many
    storms watchdogs have detected, how many are over or were only counted, and how many frames were
    dropped; channels without any are left out.
    """

    marked: int = 0
    sent: int = 0
    pools: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    storms: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    pause_frames: int = 0

    @property
    def storms_detected(self) -> int:
        """The number of storms."""
        return sum(detected for detected, *_ in self.storms.values())

    def storms_apart(self, other: Inside) -> list[str]:
        """Return the channels whose storms differ from those of another clock."""
        names = sorted({*self.storms, *other.storms})
        return [name for name in names if self.storms.get(name) != other.storms.get(name)]

    def marks_agree(self, other: Inside) -> bool:
        """Return whether two clocks have marked as many frames, but for chance."""
        variance = sum(
            one.marked * (1 - one.marked / one.sent) for one in (self, other) if one.sent
        )
        return abs(self.marked - other.marked) <= SIGMAS * math.sqrt(variance)

    def pools_apart(self, other: Inside) -> Iterator[str]:
        """Yield the pools whose peaks differ from those of another clock, with the difference."""
        for (switch, pool), (peak, headroom) in self.pools.items():
            difference = (
                peak - other.pools[switch, pool][0],
                headroom - other.pools[switch, pool][1],
            )
            if any(difference):
                yield f"{switch} {pool} {difference[0]:+d}, headroom {difference[1]:+d}"


def inside_emulated(counters: Mapping[str, Any]) -> Inside:
    """Return what the emulator has counted."""
    counted = [one for channel in counters["channels"] for one in channel["priorities"]]
    return Inside(
        sum(one["marked_frames"] for one in counted),
        sum(one["tx_frames"] for one in counted),
        {(one["switch"], one["pool"]): _peaks(one) for one in counters["pools"]},
        _storms(counters["channels"]),
        sum(channel["pause_frames"] for channel in counters["channels"]),
    )


def inside_simulated(result: Result) -> Inside:
    """Return what the simulator has counted."""
    counted = by_channel(result)
    return Inside(
        sum(one["marked_frames"] for one in counted),
        sum(one["tx_frames"] for one in counted),
        {(one["switch"], one["pool"]): _peaks(one) for one in by_pool(result)},
        _storms(counted),
        int(result.report.channel_pause_frames.sum()),
    )


def _storms(channels: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
    counts = {
        one["channel"]: (
            *(int(one["storms"][kind]) for kind in STORM_COUNTS),
            int(one["drops"]["watchdog"]),
        )
        for one in channels
    }
    return {channel: counted for channel, counted in counts.items() if any(counted)}


def _peaks(pool: Mapping[str, Any]) -> tuple[int, int]:
    return int(pool["peak_bytes"]), int(pool["headroom_peak_bytes"])
