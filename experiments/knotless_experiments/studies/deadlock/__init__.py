"""The deadlock experiment: Otsuka et al., section 4.2.

The same transfers on routes that close a cycle of channels and on routes that do not, under every
kind of flow control.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from knotless.base.flow_control import FLOW_CONTROLS
from knotless.base.quantities import MICROSECONDS
from knotless.cli.numbers import Number
from knotless.routing.vlans.assignment import TAGGINGS
from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
    ExperimentError,
)
from knotless_experiments.framework.options import delay_of, duration_of, list_option, within
from knotless_experiments.framework.routed import Measured
from knotless_experiments.framework.switches import (
    check,
    parameters_of,
    settings_of,
    switch_option,
)
from knotless_experiments.studies.deadlock import transfers
from knotless_experiments.studies.deadlock.columns import COLUMNS
from knotless_experiments.studies.deadlock.matrix import PROTOCOLS, ROUTES, Case, cases

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

DEFAULT_DURATION_S, QUICK_DURATION_S = 3.0, 2.0
LIMITS_S = (0.001, 600.0)
LIMITS_MBPS = {EMULATION: (1.0, 1e4), SIMULATION: (0.001, 1e6)}
"""Limits of emulation: below, the flows do not start in time; above, virtual time is slow."""


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    from knotless_experiments.studies.deadlock import measure, scenario
    from knotless_experiments.workloads import open_loop

    usual_s = QUICK_DURATION_S if common.quick else DEFAULT_DURATION_S
    if common.rate_mbps is not None:
        within(common.rate_mbps, LIMITS_MBPS[common.on], "--rate", "Mbit/s")
        usual_s *= open_loop.pace(common.rate_mbps)
    duration_s = duration_of(common, usual_s, LIMITS_S)
    watchdog_us = options.get("watchdog")
    if watchdog_us is not None and common.on == EMULATION:
        raise ExperimentError("--watchdog: only simulated switches have one here")
    if options.get("delay") is not None:
        _ = delay_of(common, options, 0.0)
    switches = settings_of(options)
    runs = cases(common, options, switches)
    check((case.routed, case.flow_control) for case in runs)
    for case in runs:
        _ = scenario.for_case(case).flows  # report planning errors before anything is started

    def live(lab: EmulatedFabric, case: Case, seed: int) -> Measured:
        return measure.emulated(lab, case, duration_s=duration_s, seed=seed)

    def virtual(case: Case, seed: int) -> Measured:
        return measure.simulated(case, duration_s=duration_s, seed=seed, watchdog_us=watchdog_us)

    parameters = {
        "on": common.on,
        "rate_mbps": common.rate_mbps,
        "duration_s": duration_s,
        "delay_us": options.get("delay"),
        "watchdog_us": watchdog_us,
        "cases": [
            [c.routes, c.flow_control, c.protocol, c.repeat, c.pattern, c.tagging] for c in runs
        ],
        **parameters_of(switches),
    }
    return Campaign(common.on, runs, parameters, common.seed, live, virtual)


EXPERIMENT = Experiment(
    name="deadlock",
    summary="A ring that deadlocks under PAUSE, and routes and virtual channels that cannot.",
    example="sudo knotless run deadlock --quick",
    options=(
        click.Option(
            ["--pattern"],
            metavar="LIST",
            help=f"Some of {', '.join(transfers.NAMES)} (default: {transfers.RING_4.name}).",
        ),
        list_option("--routes", f"Some of {', '.join(ROUTES)} (default: all)."),
        list_option("--tagging", f"Some of {', '.join(TAGGINGS)} (default: {TAGGINGS[0]})."),
        list_option(
            "--flow-control", f"Some of {', '.join(FLOW_CONTROLS)} (default: all but credits)."
        ),
        list_option("--protocol", f"Some of {', '.join(PROTOCOLS)} (default: all)."),
        click.Option(
            ["--delay"],
            type=Number(unit=MICROSECONDS),
            help="Delay of every link (default: that of the pattern's fabric).",
        ),
        click.Option(
            ["--watchdog"],
            type=Number(1, 1e9, unit=MICROSECONDS),
            help="Simulation: switches empty queues that were paused for longer.",
        ),
        switch_option(),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION, SIMULATION),
)
