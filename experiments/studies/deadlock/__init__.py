"""The deadlock experiment: Otsuka et al., section 4.2.

The same transfers by routes that close a cycle of channels and by routes that do not, under
every kind of flow control.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from common.flow_control import FLOW_CONTROLS
from experiments.framework.campaign import Campaign
from experiments.framework.experiment import EMULATION, SIMULATION, Common, Experiment, shown_by
from experiments.framework.options import duration_of, list_option, within
from experiments.framework.routed import Measured
from experiments.studies.deadlock import transfers
from experiments.studies.deadlock.matrix import (
    PROTOCOLS,
    ROUTES,
    Case,
    cases,
)
from experiments.studies.deadlock.row import SAMPLE_TYPES
from routing.vlans.assignment import TAGGINGS

if TYPE_CHECKING:
    from emulation.network import EmulatedFabric

DEFAULT_DURATION_S, QUICK_DURATION_S = 3.0, 2.0
LIMITS_S = (0.5, 600.0)
LIMITS_MBPS = {EMULATION: (1.0, 100.0), SIMULATION: (0.001, 1e6)}
"""Emulated: slower, and the flows do not start in time; faster, and a small machine is late."""


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    from experiments.studies.deadlock import measure, scenario

    usual_s = QUICK_DURATION_S if common.quick else DEFAULT_DURATION_S
    duration_s = duration_of(common, usual_s, LIMITS_S)
    if common.rate_mbps is not None:
        within(common.rate_mbps, LIMITS_MBPS[common.on], "--rate", "Mbit/s")
    found = cases(common, options)
    for case in found:
        _ = scenario.of(case).flows  # what cannot be planned is told before anything is built

    def live(lab: EmulatedFabric, case: Case, seed: int) -> Measured:
        return measure.emulated(lab, case, duration_s=duration_s, seed=seed)

    def virtual(case: Case, seed: int) -> Measured:
        return measure.simulated(case, duration_s=duration_s, seed=seed)

    parameters = {
        "on": common.on,
        "rate_mbps": common.rate_mbps,
        "duration_s": duration_s,
        "cases": [
            [c.routes, c.flow_control, c.protocol, c.repeat, c.pattern, c.tagging] for c in found
        ],
    }
    return Campaign(common.on, found, parameters, common.seed, live, virtual)


EXPERIMENT = Experiment(
    name="deadlock",
    summary="A ring that freezes under PAUSE, and the routes and virtual channels that cannot.",
    example="sudo knotless run deadlock --quick",
    options=(
        click.Option(
            ["--pattern"],
            metavar="LIST",
            help=f"Some of {', '.join(transfers.NAMES)} (default: {transfers.RING_4.name}).",
        ),
        list_option("--routes", f"Some of {', '.join(ROUTES)} (default: all)."),
        list_option("--tagging", f"Some of {', '.join(TAGGINGS)} (default: {TAGGINGS[0]})."),
        list_option("--flow-control", f"Some of {', '.join(FLOW_CONTROLS)} (default: all)."),
        list_option("--protocol", f"Some of {', '.join(PROTOCOLS)} (default: all)."),
    ),
    sample_types=SAMPLE_TYPES,
    prepare=prepare,
    present=shown_by("experiments.studies.deadlock.show"),
    places=(EMULATION, SIMULATION),
    identity=("pattern", "tagging", "routes", "flow_control", "protocol"),
    measures=("flows_mbps", "lost_frames"),
)
