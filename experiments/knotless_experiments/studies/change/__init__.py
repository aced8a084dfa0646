"""The change experiment: replacing one safe plan by another.

Pushed to all switches at once, in any order, two safe plans can deadlock together. The same change
in proven steps cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from knotless.base.quantities import SECONDS
from knotless.cli.numbers import Number
from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
)
from knotless_experiments.framework.options import duration_of, given, list_option, within
from knotless_experiments.framework.routed import Measured
from knotless_experiments.studies.change.cases import FLOW_CONTROLS, SWAPS, WAYS, Case, cases
from knotless_experiments.studies.change.columns import COLUMNS

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

DEFAULT_DURATION_S, DEFAULT_SPREAD_S = 2.0, 0.2
LIMITS_MBPS = (0.1, 1e5)
DURATION_LIMITS_S, SPREAD_LIMITS_S = (0.1, 60.0), (0.0, 10.0)


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises ExperimentError."""
    duration_s = duration_of(common, DEFAULT_DURATION_S, DURATION_LIMITS_S)
    spread_s = given(options.get("spread"), DEFAULT_SPREAD_S, SPREAD_LIMITS_S, "--spread", "s")
    if common.rate_mbps is not None:
        within(common.rate_mbps, LIMITS_MBPS, "--rate", "Mbit/s")
    runs = cases(common, options)

    def live(lab: EmulatedFabric, case: Case, seed: int) -> Measured:
        from knotless_experiments.studies.change.emulated import emulated

        return emulated(lab, case, duration_s=duration_s, spread_s=spread_s, seed=seed)

    def virtual(case: Case, seed: int) -> Measured:
        from knotless_experiments.studies.change.simulated import simulated

        seed = seed + case.repeat - 1
        return simulated(case, duration_s=duration_s, spread_s=spread_s, seed=seed)

    parameters = {
        "on": common.on,
        "duration_s": duration_s,
        "spread_s": spread_s,
        "cases": [[c.swap, c.flow_control, c.way, c.repeat, c.rate_mbps] for c in runs],
    }
    return Campaign(common.on, runs, parameters, common.seed, live, virtual)


EXPERIMENT = Experiment(
    name="change",
    summary="Replacing a safe plan by another: pushed at once it deadlocks, in proven steps not.",
    example="knotless run change --repeats 50",
    options=(
        list_option("--fabric", f"Some of {', '.join(s.name for s in SWAPS)} (default: ring-4)."),
        list_option(
            "--flow-control", f"Some of {', '.join(FLOW_CONTROLS)} (default: all; emulated: pause)."
        ),
        list_option("--way", f"Some of {', '.join(WAYS)} (default: all)."),
        click.Option(
            ["--spread"],
            type=Number(unit=SECONDS),
            help="Switches take the rules of a step at random times within this time, s"
            f" (default: {DEFAULT_SPREAD_S:g}).",
        ),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(SIMULATION, EMULATION),
)
