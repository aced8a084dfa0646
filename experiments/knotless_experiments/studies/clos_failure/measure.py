"""Runs of a case in the simulator, one for each seed."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any

from knotless.simulation import Load, Scenario, simulate
from knotless.simulation.units import PICOSECONDS_PER_US
from knotless_experiments.framework.cycles import from_first
from knotless_experiments.framework.experiment import SIMULATION
from knotless_experiments.framework.routed import Measured, in_simulation
from knotless_experiments.studies.clos_failure.cases import Case
from knotless_experiments.studies.clos_failure.columns import COLUMNS


def simulated(case: Case, *, duration_s: float, seeds: int, seed: int) -> Measured:
    """Run a case under PFC with this seed and the following ones."""
    plan, state = case.plan, case.state
    runs: list[dict[str, Any]] = []
    for of_run in range(seed, seed + seeds):
        result = simulate(
            Scenario(
                plan,
                case.pattern(of_run),
                Load("saturate"),
                flow_control=plan.flow_control,
                duration_us=1e6 * duration_s,
                seed=of_run,
                state=state,
            )
        )
        deadlock = result.report.deadlock
        runs.append(
            {
                "seed": of_run,
                "deadlock": deadlock is not None,
                "since_us": None if deadlock is None else deadlock.since_ps / PICOSECONDS_PER_US,
                "cycle": from_first(result.knot),
                "delivered": int(result.report.flow_packets.sum()),
                "lost": result.lost_frames,
            }
        )
    frozen = [run for run in runs if run["deadlock"]]
    row = COLUMNS.row(
        on=SIMULATION,
        fabric=case.routed.name,
        without=case.without,
        routes=case.routes,
        traffic=case.traffic,
        repeat=case.repeat,
        flow_control=plan.flow_control,
        rate_mbps=plan.fabric.hosts[0].rate_mbps,
        vcs=plan.vcs,
        first_seed=seed,
        seeds=seeds,
        predicted_cycle=from_first(case.predicted_cycle),
        frozen=len(frozen),
        as_predicted=sum(case.as_predicted(run["cycle"]) for run in frozen),
        knots=dict(Counter(" ".join(run["cycle"]) for run in frozen).most_common()),
        frozen_after_us=median(run["since_us"] for run in frozen) if frozen else None,
        lost_frames=sum(run["lost"] for run in runs),
        delivered_frames=sum(run["delivered"] for run in runs),
    )
    head = {name: row[name] for name in ("fabric", "without", "routes", "traffic", "repeat")}
    return in_simulation(row), [{**head, **run, "cycle": " ".join(run["cycle"])} for run in runs]
