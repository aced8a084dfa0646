"""Running one case and making its row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from knotless.routing.plan import Plan
from knotless_experiments.framework.experiment import SIMULATION
from knotless_experiments.framework.routed import Measured
from knotless_experiments.messages.logp import LogP, barrier_us, mean_of
from knotless_experiments.workloads.barriers.case import (
    Case,
    Settings,
    Testbed,
    mean_switches,
    members,
)
from knotless_experiments.workloads.barriers.columns import COLUMNS
from knotless_experiments.workloads.barriers.passages import Passages

LISTED_SAMPLES = 20_000
"""Limit of passages stored per case, of evenly spaced barriers."""


class Place(Protocol):
    """A testbed that runs barriers: a simulated or an emulated fabric."""

    @property
    def plan(self) -> Plan:
        """The plan of the fabric."""

    def watched(self) -> AbstractContextManager[list[str]]:
        """Return a context manager for the programs without virtual time during its block."""

    def run(self, case: Case) -> tuple[Passages | None, int]:
        """Return the passages (None if incomplete), and the number of retransmissions."""

    @property
    def pairs(self) -> int:
        """The number of pairs of hosts that :func:`costs` measures."""

    def pair(self, source: str, target: str) -> LogP:
        """Return the costs of a message between two hosts."""

    def pace(self) -> tuple[float | None, list[str]]:
        """Return the stretch of virtual time since the last call, and problems."""


def built(
    on: str,
    testbed: Testbed,
    settings: Settings,
    cases: list[Case],
    say: Callable[[str], None],
) -> AbstractContextManager[Place]:
    """Return the place for ``cases``, which are all on ``testbed``."""
    if on == SIMULATION:
        from knotless_experiments.workloads.barriers.simulated import SimulatedTestbed

        return SimulatedTestbed.build(testbed, settings, cases, say)
    from knotless_experiments.workloads.barriers.emulated import EmulatedTestbed

    return EmulatedTestbed.build(testbed, settings, cases, say)


def costs(place: Place, case: Case, seed: int) -> LogP:
    """Return what a message costs between hosts of a case, averaged over pairs of them."""
    names = members(place.plan.fabric, case.hosts)
    rng = Random(seed)  # noqa: S311 - a sample, repeatable, not a secret
    pairs = [rng.sample(names, 2) for _ in range(place.pairs)]
    return mean_of([place.pair(source, target) for source, target in pairs])


def run(place: Place, on: str, case: Case, settings: Settings, costs: LogP) -> Measured:
    """Run a case with these message ``costs``; return its row and samples (without ``row``)."""
    names = members(place.plan.fabric, case.hosts)
    place.pace()
    with place.watched() as programs:
        passages, asked = place.run(case)
    stretch, problems = place.pace()
    lists = max(1, settings.lists) if case.algorithm == "unicast" else 1
    if passages is None:
        durations: NDArray[np.float64] = np.zeros((1, len(names)))
        problems = [*problems, "not every process passed every barrier"]
    else:
        durations = passages.durations_us
        if passages.left_early:
            problems = [*problems, f"{passages.left_early} barriers were left early"]
    row = COLUMNS.row(
        on=on,
        algorithm=case.algorithm,
        hosts=len(names),
        fabric=case.testbed.spec,
        engine=case.testbed.request.engine,
        vcs=place.plan.vcs,
        networks=case.testbed.networks,
        repeat=case.repeat,
        barriers=0 if passages is None else len(durations),
        lists=lists,
        mean_us=round(float(durations.mean()), 3),
        p99_us=round(float(np.percentile(durations, 99)), 3),
        min_us=round(float(durations.min(axis=0).mean()), 3),
        max_us=round(float(durations.max(axis=0).mean()), 3),
        predicted_us=round(barrier_us(case.algorithm, len(names), costs, case.testbed.networks), 3),
        one_way_us=round(costs.one_way_us, 3),
        switches=round(mean_switches(place.plan, names), 4),
        list_means_us=[round(float(part.mean()), 3) for part in np.split(durations, lists)]
        if passages is not None
        else [],
        asked=asked,
        stretch=stretch,
        real_time_programs=programs,
        valid=not problems,
        problems=problems,
    )
    return row, [] if passages is None else _samples(passages)


def _samples(passages: Passages) -> list[dict[str, Any]]:
    durations = passages.durations_us
    step = max(1, durations.size // LISTED_SAMPLES)
    return [
        {"barrier": barrier, "process": process, "duration_us": float(duration)}
        for barrier in range(0, len(durations), step)
        for process, duration in enumerate(durations[barrier])
    ]
