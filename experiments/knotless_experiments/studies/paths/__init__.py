"""Static properties of routes, compared with the papers: lengths, loads, VLANs, VCs.

References
----------
Otsuka et al.: switch-tagged VLAN routing, table 1 and figure 6.
Koibuchi et al.: deadlock-free deterministic routings on the RHiNET-2 cluster, table 1.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import (
    ANALYSIS,
    Common,
    Experiment,
    ExperimentError,
)
from knotless_experiments.framework.options import list_option
from knotless_experiments.framework.routed import Measured
from knotless_experiments.studies.paths.columns import COLUMNS

if TYPE_CHECKING:
    from knotless_experiments.studies.paths.cases import Case


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises KnotlessError if they are invalid."""
    from knotless_experiments.studies.paths import cases, measure

    if common.duration_s is not None or common.rate_mbps is not None:
        raise ExperimentError("--duration and --rate: nothing is sent along these paths")
    runs = cases.cases(common, options)

    def virtual(case: Case, seed: int) -> Measured:
        del seed
        return measure.analysed(case)

    parameters = {
        "on": common.on,
        "cases": [
            [c.routed.spec, c.routed.routes, c.routed.request.vlans] for c in runs if c.repeat == 1
        ],
        "repeats": common.repeats,
    }
    return Campaign(common.on, runs, parameters, common.seed, virtual=virtual)


EXPERIMENT = Experiment(
    name="paths",
    summary="Routes by their rules: switches on a path, paths on a channel, VLANs, VCs.",
    example="knotless run paths --fabric torus,4,4 --engine updown,dl:2",
    options=(
        click.Option(
            ["--fabric"], multiple=True, metavar="SPEC", help="A fabric; may be repeated."
        ),
        list_option("--engine", "Engines; NAME:N for N virtual channels; auto."),
        list_option("--select", "spread, low-port, or both."),
        list_option("--vlans", "default, tree (for ordinary switches), or both."),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(ANALYSIS,),
)
