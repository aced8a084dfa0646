"""Analysis of a pattern on a plan: path lengths, channel loads and fair rates of its flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from knotless.routing.plan import Plan
from knotless.traffic.contention import Contention, Lines, contention
from knotless.traffic.fairness import Rates, fair_rates
from knotless.traffic.patterns import Pattern

FAIR_FLOWS = 2_000_000
"""Limit of flows for which fair rates are computed; more would take minutes."""


@dataclass(frozen=True)
class Analysis:
    """The flows' channel loads, and their max-min fair rates (Mbit/s on the line).

    ``rates`` is None if there are more than :data:`FAIR_FLOWS` flows, or none.
    """

    lines: Lines
    contention: Contention
    rates: Rates | None

    def metrics(self) -> dict[str, Any]:
        """Return the metrics by name; missing ones are None."""
        low, mean, high = (
            (None, None, None)
            if self.rates is None
            else (round(float(f(self.rates)), 6) for f in (np.min, np.mean, np.max))
        )
        return {
            "flows": self.contention.flows,
            "throughput_ratio": rounded(self.contention.throughput_ratio),
            "max_channel_load": self.contention.max_channel_load,
            "max_host_load": self.contention.max_host_load,
            "fair_min_mbps": low,
            "fair_mean_mbps": mean,
            "fair_max_mbps": high,
        }


def analyse(plan: Plan, pattern: Pattern, seed: int) -> Analysis:
    """Analyse a pattern's flows on a plan; raises PatternError if it does not fit the fabric."""
    lines = Lines(plan)
    shared = contention(lines, pattern.phases(plan.fabric, seed))
    rates = None
    if 0 < shared.flows <= FAIR_FLOWS:
        capacity = lines.rates_mbps()
        phases = pattern.phases(plan.fabric, seed)
        rates = np.concatenate([fair_rates(lines.channels_of(flows), capacity) for flows in phases])
    return Analysis(lines, shared, rates)


def rounded(ratio: float) -> float:
    """Round a ratio to four digits, but to 1.0 only if it is exactly 1."""
    return ratio if ratio == 1.0 else min(round(ratio, 4), 0.9999)
