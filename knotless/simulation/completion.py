"""The completion of messages: flow completion times, and slowdowns over the time alone.

The time alone of a message is that of the same message on the same path with nothing else in the
network (``core/simulator/src/alone.rs``). Percentiles are values: the least time that at least this
share of the messages does not exceed (nearest rank).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless._core.simulator import Simulation
from knotless.simulation.units import PICOSECONDS_PER_US

MAX_RECORDED = 10_000_000
"""The most messages whose completion is kept: 400 MB."""
BIN_EDGES = (0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""Bins of sizes begin above these numbers of bytes; the last one has no end."""
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Completions:
    """Messages that completed since the warm-up, in order of their ends; an entry for each.

    ``omitted`` is the number of further ones. ``alone_ps`` is 0 where it is unknown.
    """

    source: NDArray[np.uint32]
    destination: NDArray[np.uint32]
    bytes: NDArray[np.uint64]
    start_ps: NDArray[np.uint64]
    end_ps: NDArray[np.uint64]
    acknowledged: NDArray[np.bool_]
    omitted: int
    alone_ps: NDArray[np.uint64]

    @classmethod
    def from_simulation(cls, simulation: Simulation) -> Completions:
        """Return those of a simulation that has recorded them."""
        recorded = simulation.completions()
        source, destination, size, _, _, acknowledged, _ = recorded
        alone_ps = simulation.alone_ps(source, destination, size, acknowledged)
        return cls(*recorded, alone_ps)

    @property
    def fct_ps(self) -> NDArray[np.uint64]:
        """The flow completion times."""
        return self.end_ps - self.start_ps

    @property
    def slowdown(self) -> NDArray[np.float64]:
        """The flow completion times over the times alone; NaN where these are unknown."""
        alone = np.where(self.alone_ps > 0, self.alone_ps, np.nan)
        return np.asarray(self.fct_ps / alone, dtype=np.float64)

    def fct_us(self) -> dict[str, Any]:
        """Return the statistics of flow completion times, of all and by size."""
        return self._by_size(self.fct_ps / PICOSECONDS_PER_US, 6) | {"omitted": self.omitted}

    def slowdowns(self) -> dict[str, Any] | None:
        """Return the same of slowdowns; None if times alone are unknown."""
        slowdown = self.slowdown
        return None if np.isnan(slowdown).any() else self._by_size(slowdown, 6)

    def _by_size(self, values: NDArray[np.float64], digits: int) -> dict[str, Any]:
        bins = [
            {"above_bytes": above, "to_bytes": to, **statistics(values[chosen], digits)}
            for above, to, chosen in self._bins()
        ]
        return {**statistics(values, digits), "bins": bins}

    def _bins(self) -> Iterator[tuple[int, int | None, NDArray[np.bool_]]]:
        """Yield the bins that hold anything."""
        for above, to in zip(BIN_EDGES, (*BIN_EDGES[1:], None), strict=True):
            chosen = self.bytes > above
            if to is not None:
                chosen &= self.bytes <= to
            if chosen.any():
                yield above, to, chosen

    def rows(self, hosts: list[str]) -> list[dict[str, Any]]:
        """Return each message as a row, with the names of ``hosts``."""
        columns = (self.source, self.destination, self.bytes, self.start_ps, self.fct_ps)
        rows = zip(*(c.tolist() for c in (*columns, self.alone_ps)), strict=True)
        return [
            {
                "source": hosts[source],
                "destination": hosts[destination],
                "bytes": size,
                "start_us": start_ps / PICOSECONDS_PER_US,
                "fct_us": fct_ps / PICOSECONDS_PER_US,
                "alone_us": alone_ps / PICOSECONDS_PER_US if alone_ps else None,
            }
            for source, destination, size, start_ps, fct_ps, alone_ps in rows
        ]


def statistics(values: NDArray[np.float64], digits: int) -> dict[str, Any]:
    """Return number, mean, percentiles (nearest rank) and maximum; without values, only 0."""
    count = len(values)
    if not count:
        return {"messages": 0}
    ordered = np.sort(values)
    return {
        "messages": count,
        "mean": round(float(ordered.mean()), digits),
        **{
            name: round(float(ordered[math.ceil(share * count) - 1]), digits)
            for name, share in PERCENTILES.items()
        },
        "max": round(float(ordered[-1]), digits),
    }
