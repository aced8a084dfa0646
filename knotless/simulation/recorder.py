"""Recording what all channels do in a simulation, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless._core.simulator import GAP_BYTES, Simulation
from knotless.results.recording import FULL, Recording
from knotless.simulation.result import Result
from knotless.simulation.scenario import Scenario
from knotless.simulation.units import PICOSECONDS_PER_US, picoseconds
from knotless.topologies.formats import files

keep: ContextVar[Callable[[Recording], None] | None] = ContextVar("keep", default=None)
"""Receives a recording of every simulation that has no runner of its own; None: none is made."""
DEFAULT_SAMPLES = 500
ENDLESS_US = 5e4
"""Stands for the duration of a simulation that ends by itself."""
MAX_SAMPLES = 1000
MAX_BYTES = 256 << 20
"""Above either, every second sample is dropped and the interval doubles."""

_Numbers = NDArray[np.uint64]
_Sample = tuple[int, tuple[_Numbers, ...]]


class Recorder:
    """Runs a simulation and samples its counters every ``every_us`` of virtual time."""

    def __init__(self, every_us: float) -> None:
        self._every_ps = max(1, picoseconds(every_us))
        self._samples: list[_Sample] = []

    @classmethod
    def for_scenario(cls, scenario: Scenario, every_us: float | None = None) -> Recorder:
        """Return one for a scenario; by default it samples :data:`USUAL_SAMPLES` times."""
        return cls(every_us or (scenario.run.duration_us or ENDLESS_US) / DEFAULT_SAMPLES)

    def run(self, simulation: Simulation, progress: Callable[[], None]) -> None:
        """Run a simulation to its end; the result is the same as without a recorder."""
        self._samples = [self._sample(simulation, 0)]
        at_ps = self._every_ps
        while True:
            self._samples.append(self._sample(simulation, at_ps))
            self._thin()
            progress()
            if not simulation.run(1):
                return
            at_ps += self._every_ps
            # Nothing happens for a long time: one sample is enough for it.
            behind_ps = simulation.now_ps - at_ps
            if behind_ps > 0:
                at_ps += -(-behind_ps // self._every_ps) * self._every_ps

    def recording(self, result: Result) -> Recording:
        """Return the recording of a simulation that has ended."""
        table = result.channels
        capacity = table.rate_bps.astype(float)[:, None] / 8 / 1e12
        frames = [
            _frame(before, after, capacity, self._knot(result, after[0]))
            for before, after in zip(self._samples, self._samples[1:], strict=False)
        ]
        scenario = result.scenario
        title = f"simulation of {scenario.demand.name}, engine {scenario.plan.engine}, "
        title += f"{scenario.switching.flow_control}"
        return Recording(title, files.to_json(scenario.plan.fabric), table.names, frames)

    def _sample(self, simulation: Simulation, at_ps: int) -> _Sample:
        """Return the counters of the priorities that are in use."""
        *by_priority, drops = simulation.sample(at_ps)
        used = np.flatnonzero(by_priority[1].any(axis=0) | by_priority[3].any(axis=0))
        top = int(used.max()) + 1 if used.size else 1
        return at_ps, (*(np.ascontiguousarray(column[:, :top]) for column in by_priority), drops)

    def _thin(self) -> None:
        size = sum(column.nbytes for _, sample in self._samples for column in sample)
        if len(self._samples) > MAX_SAMPLES or size > MAX_BYTES:
            # The first sample stays: it is where the first interval begins.
            self._samples = self._samples[::2]
            self._every_ps *= 2

    @staticmethod
    def _knot(result: Result, at_ps: int) -> dict[str, Any] | None:
        deadlock = result.report.deadlock
        if deadlock is None or at_ps < deadlock.since_ps:
            return None
        if deadlock.broken_ps is not None and at_ps >= deadlock.broken_ps:
            return None
        return {
            "since_us": deadlock.since_ps / PICOSECONDS_PER_US,
            "cycle": result.knot,
            "members": result.knot_members,
            "waiting": {channel: _flows(flows) for channel, flows in result.knot_frames().items()},
        }


def _flows(frames_by_flow: Mapping[str, int]) -> list[dict[str, Any]]:
    flows = []
    for flow, frames in frames_by_flow.items():
        source, _, destination = flow.partition(">")
        flows.append({"from": source, "to": destination, "frames": frames})
    return flows


def _frame(
    before: _Sample, after: _Sample, capacity: NDArray[np.float64], knot: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the frame between two samples; ``capacity`` (channels, 1) is in bytes per ps.

    A packet counts where its transmission begins, so loads are exact over many packets only.
    """
    passed_ps = max(1, after[0] - before[0])
    sent, octets, paused_ps, queue, ingress, dropped = after[1]
    previous = [_widened(column, sent.shape[1]) for column in before[1][:3]]
    wire = (octets - previous[1]) + np.uint64(GAP_BYTES) * (sent - previous[0])
    load = np.minimum(FULL, np.rint(FULL * wire / (capacity * passed_ps))).astype(np.int64)
    paused = np.rint(FULL * ((paused_ps - previous[2]) / passed_ps)).astype(np.int64)
    paused = np.minimum(FULL, paused)
    # Under 802.3x all priorities pause together: those that carry nothing are left out.
    alone = (paused > 0) & (paused != paused[:, :1])
    alone[:, 0] = paused[:, 0] > 0
    shown = (load > 0) | (queue > 0) | (ingress > 0) | alone
    channels, priorities = np.nonzero(shown)
    columns = [channels, priorities, *(c[shown] for c in (load, paused, queue, ingress))]
    new = dropped - before[1][5]
    lossy = np.flatnonzero(dropped)
    return {
        "at_us": after[0] / PICOSECONDS_PER_US,
        "rows": list(zip(*(column.tolist() for column in columns), strict=True)),
        "drops": list(
            zip(lossy.tolist(), dropped[lossy].tolist(), new[lossy].tolist(), strict=True)
        ),
        "down": [],
        "knot": knot,
    }


def _widened(column: _Numbers, priorities: int) -> _Numbers:
    """Return the columns of an earlier sample, in which fewer priorities may have been used."""
    missing = priorities - column.shape[1]
    return np.pad(column, ((0, 0), (0, max(0, missing))))[:, :priorities]
