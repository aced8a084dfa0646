"""The endpoints experiment: hosts that answer before they take more, with real frames.

The same fat-tree, routes and requests, and hosts that have message classes (``docs/endpoints.md``):
what the verdict says of them, and whether the fabric freezes through its hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import EMULATION, SIMULATION, Common, Experiment
from knotless_experiments.framework.options import duration_of, list_option, within
from knotless_experiments.framework.routed import Measured
from knotless_experiments.studies.endpoints.columns import COLUMNS

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric
    from knotless_experiments.studies.endpoints.cases import Case

DURATION_S, QUICK_DURATION_S = 10.0, 4.0
LIMITS_S = (2.0, 600.0)
LIMITS_MBPS = (1.0, 100.0)


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises KnotlessError if they are invalid."""
    from knotless_experiments.studies.endpoints import cases, measure

    duration_s = duration_of(common, QUICK_DURATION_S if common.quick else DURATION_S, LIMITS_S)
    if common.rate_mbps is not None:
        within(common.rate_mbps, LIMITS_MBPS, "--rate", "Mbit/s")
    runs = cases.cases(common, options.get("endpoints"))

    def live(lab: EmulatedFabric, case: Case, seed: int) -> Measured:
        del seed  # nothing is random
        return measure.emulated(lab, case, duration_s)

    def virtual(case: Case, seed: int) -> Measured:
        return measure.simulated(case, duration_s, seed)

    parameters = {
        "on": common.on,
        "duration_s": duration_s,
        "flows": {case.endpoints.name: [list(pair) for pair in case.flows] for case in runs},
        "cases": [[case.routed.spec, case.endpoints.name] for case in runs if case.repeat == 1],
        "repeats": common.repeats,
    }
    return Campaign(common.on, runs, parameters, common.seed, live, virtual)


EXPERIMENT = Experiment(
    name="endpoints",
    summary="Hosts that answer before they take more: which freeze a fabric that is safe.",
    example="sudo knotless run endpoints --endpoints request-reply,rdma-read",
    options=(
        list_option(
            "--endpoints",
            "What hosts send before they take more: presets, or files F.yaml"
            " (default: sink, rdma-read, request-reply, replies-together, replies-apart).",
        ),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION, SIMULATION),
)
