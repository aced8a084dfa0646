"""A simulation in which switches take other rules while it runs.

The scenario's ``state`` is that of :func:`knotless.forwarding.openflow.reader.state_to_replay`: it
has what each switch does by each of several generations of rules. All switches hold generation 0 at
first.
"""

from __future__ import annotations

import time

from knotless.base.errors import SimulationError
from knotless.simulation.channels import Numbers
from knotless.simulation.result import Result
from knotless.simulation.run import prepare
from knotless.simulation.scenario import Scenario
from knotless.simulation.units import picoseconds

Frames = dict[tuple[str, int], int]


class RuleChanges:
    """A running simulation; ``now_us`` is its time."""

    def __init__(self, scenario: Scenario) -> None:
        began = time.perf_counter()
        self._scenario = scenario
        self._simulation, self._table, self._flows, _ = prepare(scenario)
        self._prepared = time.perf_counter()
        self._setup_s = self._prepared - began
        self.now_us = 0.0

    def run_to(self, at_us: float) -> None:
        """Run all events up to a time."""
        self._simulation.run_to(picoseconds(at_us))
        self.now_us = at_us

    def hold(self, switch: str, generation: int) -> None:
        """Have a switch hold a generation of rules from now on.

        Frames that it has forwarded already are not affected. Raises SimulationError if there is no
        such generation.
        """
        try:
            self._simulation.hold(self._scenario.plan.fabric.switch_index[switch], generation)
        except ValueError as error:
            raise SimulationError(str(error)) from None

    def passed(self) -> tuple[Frames, Frames]:
        """Return the unicast frames so far, by channel and priority.

        First those that switches have queued for channels to other switches, then those that have
        arrived at switches by these channels, as (``s1:2``, priority) -> frames.
        """
        queued, arrived = self._simulation.passed()
        names = [(n, name) for n, name in enumerate(self._table.names) if ":" in name]

        def named(counts: Numbers) -> Frames:
            lines = {name: counts[number].tolist() for number, name in names}
            return {
                (name, p): frames for name, line in lines.items() for p, frames in enumerate(line)
            }

        return named(queued), named(arrived)

    def result(self) -> Result:
        """Return the counters so far."""
        report, wall_s = self._simulation.report(), time.perf_counter() - self._prepared
        return Result(self._scenario, self._table, self._flows, report, None, wall_s, self._setup_s)
