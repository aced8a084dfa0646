"""What a pattern's flows get of a plan, path by path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from routing.plan import Plan
from traffic.contention import Contention, Lines, contention
from traffic.fairness import Rates, fair_rates
from traffic.patterns import Pattern

FAIR_FLOWS = 2_000_000
"""Fair rates of more flows than these would take minutes; they are left out, and it is said."""


@dataclass(frozen=True)
class Analysis:
    """How the flows share channels, and their max-min fair rates (Mbit/s of line).

    ``rates`` is None where there are more than :data:`FAIR_FLOWS` flows, or none.
    """

    lines: Lines
    found: Contention
    rates: Rates | None

    def figures(self) -> dict[str, Any]:
        """Return the figures by name, None for those that there are not."""
        low, mean, high = (
            (None, None, None)
            if self.rates is None
            else (round(float(f(self.rates)), 6) for f in (np.min, np.mean, np.max))
        )
        return {
            "flows": self.found.flows,
            "throughput_ratio": rounded(self.found.throughput_ratio),
            "max_channel_load": self.found.max_channel_load,
            "max_host_load": self.found.max_host_load,
            "fair_min_mbps": low,
            "fair_mean_mbps": mean,
            "fair_max_mbps": high,
        }


def analyse(plan: Plan, pattern: Pattern, seed: int) -> Analysis:
    """Send a pattern's flows over a plan; raises PatternError where it does not fit."""
    lines = Lines(plan)
    found = contention(lines, pattern.phases(plan.fabric, seed))
    rates = None
    if 0 < found.flows <= FAIR_FLOWS:
        capacity = lines.rates_mbps()
        phases = pattern.phases(plan.fabric, seed)
        rates = np.concatenate([fair_rates(lines.of(flows), capacity) for flows in phases])
    return Analysis(lines, found, rates)


def rounded(ratio: float) -> float:
    """Return a ratio with four digits, but 1.0 only where nothing at all is shared."""
    return ratio if ratio == 1.0 else min(round(ratio, 4), 0.9999)
