"""The deadlock experiment: Otsuka et al., section 4.2, on a ring of four switches.

The same four flows, each two switches round the ring, by routes that close a cycle of
channels and by routes that do not, under every kind of flow control.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import click

from experiments.deadlock import matrix
from experiments.deadlock.row import SAMPLE_TYPES
from experiments.experiment import (
    Common,
    Experiment,
    ExperimentError,
    Presentation,
    Progress,
    Record,
)

DEFAULT_DURATION_S = 3.0
LIMITS_S = (0.5, 600.0)
LIMITS_MBPS = (1.0, 100.0)
"""Slower, and the flows do not start in time; faster, and a small machine is late."""


@dataclass(frozen=True)
class DeadlockCampaign:
    """The cases to run, and how."""

    cases: Sequence[matrix.Case]
    duration_s: float
    rate_mbps: float
    seed: int

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what decides the run."""
        return {
            "fabric": "ring,4",
            "rate_mbps": self.rate_mbps,
            "duration_s": self.duration_s,
            "cases": [
                [case.routes, case.flow_control, case.protocol, case.repeat] for case in self.cases
            ],
        }

    @property
    def steps(self) -> int:
        """A fabric for each kind of routes, and a run for each case."""
        return len(self.cases) + len({case.routes for case in self.cases})

    def run(self, record: Record, progress: Progress) -> None:
        """Run every case, one fabric for each kind of routes."""
        from emulation.network import EmulatedFabric
        from experiments.deadlock import measure, scenario

        plans = scenario.scenarios(self.cases, self.rate_mbps)
        row = 0
        for routes, of_routes in groupby(self.cases, key=lambda case: case.routes):
            planned = plans[routes]
            progress.begin(f"starting the fabric with {routes} routes")
            with EmulatedFabric(
                planned.fabric,
                name=f"run-{secrets.token_hex(2)}",
                openflow_port=0,
                rest_port=0,
                **scenario.ROUTING[routes],
            ) as lab:
                progress.advance()
                for case in of_routes:
                    progress.begin(str(case))
                    found, lines = measure.run_in_time(
                        lab, planned, case, duration_s=self.duration_s, seed=self.seed + row
                    )
                    record(found.as_json(), [{"row": row, **line} for line in lines])
                    progress.advance()
                    row += 1


def _within(value: float, limits: tuple[float, float], option: str, unit: str) -> float:
    if not limits[0] <= value <= limits[1]:
        raise ExperimentError(
            f"{option}: {value:g} is not within {limits[0]:g}..{limits[1]:g} {unit}"
        )
    return value


def prepare(common: Common, options: Mapping[str, Any]) -> DeadlockCampaign:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    from experiments.deadlock import scenario

    cases = matrix.cases(
        options.get("routes"),
        options.get("flow_control"),
        options.get("protocol"),
        quick=common.quick,
        repeats=common.repeats,
    )
    duration_s = DEFAULT_DURATION_S if common.duration_s is None else common.duration_s
    rate_mbps = scenario.DEFAULT_RATE_MBPS if common.rate_mbps is None else common.rate_mbps
    campaign = DeadlockCampaign(
        cases,
        _within(duration_s, LIMITS_S, "--duration", "s"),
        _within(rate_mbps, LIMITS_MBPS, "--rate", "Mbit/s"),
        common.seed,
    )
    scenario.scenarios(cases, rate_mbps)
    return campaign


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Show a run; see :mod:`experiments.deadlock.show`."""
    from experiments.deadlock import show

    return show.present(run, samples, draw)


EXPERIMENT = Experiment(
    name="deadlock",
    summary="A ring that freezes under PAUSE, and the routes and virtual channels that cannot.",
    example="sudo knotless run deadlock --quick",
    options=(
        click.Option(["--routes"], help=f"Some of {','.join(matrix.ROUTES)} (default: all)."),
        click.Option(
            ["--flow-control"], help=f"Some of {','.join(matrix.FLOW_CONTROLS)} (default: all)."
        ),
        click.Option(["--protocol"], help=f"Some of {','.join(matrix.PROTOCOLS)} (default: all)."),
    ),
    sample_types=SAMPLE_TYPES,
    prepare=prepare,
    present=present,
    identity=("routes", "flow_control", "protocol"),
    measures=("flows_mbps", "lost_frames"),
)
