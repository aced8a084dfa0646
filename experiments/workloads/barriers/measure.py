"""Runs one case where it is to run, and makes its row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from experiments.framework.experiment import SIMULATION
from experiments.framework.routed import Measured
from experiments.workloads.barriers.case import Case, Ground, Settings, mean_switches, members
from experiments.workloads.barriers.passages import Passages
from experiments.workloads.barriers.row import Row
from experiments.workloads.logp import LogP, barrier_us
from routing.plan import Plan

LISTED_SAMPLES = 20_000
"""At most so many passages of a case are kept one by one, of evenly spaced barriers."""


class Place(Protocol):
    """Where barriers run: a simulated or an emulated fabric."""

    @property
    def plan(self) -> Plan:
        """The plan that it runs by."""

    def run(self, case: Case) -> tuple[Passages | None, int]:
        """Return the passages (None: not all went through), and the messages asked for."""

    def costs(self, case: Case) -> LogP:
        """Return what a message costs there between the hosts of a case."""

    def pair(self, source: str, target: str) -> LogP:
        """Return what a message costs between two hosts."""

    def lateness(self) -> tuple[float | None, list[str]]:
        """Return the lateness (us, 99th percentile) since the last call, and what is wrong."""


def built(
    on: str,
    ground: Ground,
    settings: Settings,
    cases: list[Case],
    say: Callable[[str], None],
) -> AbstractContextManager[Place]:
    """Return the place for ``cases``, which are all on ``ground``."""
    if on == SIMULATION:
        from experiments.workloads.barriers.simulated import SimulatedGround

        return SimulatedGround.build(ground, settings, cases, say)
    from experiments.workloads.barriers.emulated import EmulatedGround

    return EmulatedGround.build(ground, settings, cases, say)


def run(place: Place, on: str, case: Case, settings: Settings, costs: LogP) -> Measured:
    """Run a case, messages costing ``costs``; return its row, and its samples without ``row``."""
    names = members(place.plan.fabric, case.hosts)
    place.lateness()
    passages, asked = place.run(case)
    lateness, problems = place.lateness()
    late = bool(problems)
    lists = max(1, settings.lists) if case.algorithm == "unicast" else 1
    if passages is None:
        durations: NDArray[np.float64] = np.zeros((1, len(names)))
        problems = [*problems, "not every process went through every barrier"]
    else:
        durations = passages.durations_us
        if passages.left_early:
            problems = [*problems, f"{passages.left_early} barriers were left early"]
    row = Row(
        on=on,
        algorithm=case.algorithm,
        hosts=len(names),
        fabric=case.ground.spec,
        engine=case.ground.request.engine,
        vcs=place.plan.vcs,
        networks=case.ground.networks,
        repeat=case.repeat,
        barriers=0 if passages is None else len(durations),
        lists=lists,
        mean_us=round(float(durations.mean()), 3),
        p99_us=round(float(np.percentile(durations, 99)), 3),
        min_us=round(float(durations.min(axis=0).mean()), 3),
        max_us=round(float(durations.max(axis=0).mean()), 3),
        predicted_us=round(barrier_us(case.algorithm, len(names), costs, case.ground.networks), 3),
        one_way_us=round(costs.one_way_us, 3),
        switches=round(mean_switches(place.plan, names), 4),
        list_means_us=[round(float(part.mean()), 3) for part in np.split(durations, lists)]
        if passages is not None
        else [],
        asked=asked,
        lateness_us_p99=lateness,
        late=late,
        valid=not problems,
        problems=problems,
    )
    return row.as_json(), [] if passages is None else _samples(passages)


def _samples(passages: Passages) -> list[dict[str, Any]]:
    durations = passages.durations_us
    step = max(1, durations.size // LISTED_SAMPLES)
    return [
        {"barrier": barrier, "process": process, "duration_us": float(duration)}
        for barrier in range(0, len(durations), step)
        for process, duration in enumerate(durations[barrier])
    ]
