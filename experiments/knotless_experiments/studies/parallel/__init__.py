"""Message passing on fabrics: PingPong, SendRecv, Alltoall, Barrier over sizes.

The emulated fabric runs Open MPI; the simulation replays the messages of equivalent programs, see
:mod:`knotless_experiments.studies.parallel.simulated`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from knotless.base.name_lists import choice
from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
)
from knotless_experiments.framework.options import list_option, numbers
from knotless_experiments.studies.parallel.columns import COLUMNS, TITLES
from knotless_experiments.workloads.program_campaign import ProgramCampaign, program_options

if TYPE_CHECKING:
    from knotless_experiments.framework.campaign import Campaign
    from knotless_experiments.studies.parallel.measure import Case

MEASUREMENTS = tuple(TITLES)
SIZES = (64, 1024, 16384)
QUICK_SIZES = (64, 16384)
LIMITS_BYTES = (1, 1 << 24)
REPETITIONS = 10
QUICK_REPETITIONS = 5


def cases(campaign: ProgramCampaign, options: Mapping[str, Any]) -> list[Case]:
    """Return the cases in running order; raises KnotlessError before anything is started."""
    from knotless_experiments.studies.parallel import simulated
    from knotless_experiments.studies.parallel.measure import Case

    quick = campaign.common.quick
    chosen: Sequence[str] = choice(options["measurements"], MEASUREMENTS, "--measurements")
    sizes = numbers(options["sizes"], QUICK_SIZES if quick else SIZES, LIMITS_BYTES, "--sizes")
    repetitions = QUICK_REPETITIONS if quick else REPETITIONS
    if campaign.common.on == SIMULATION:
        simulated.require(chosen, campaign.processes)
        repetitions = 1
    return [
        Case(routed, campaign.processes, repeat, name, size, repetitions)
        for routed in campaign.routes
        for name in chosen
        for size in ([0] if name == "barrier" else sizes)
        for repeat in campaign.repeated()
    ]


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    from knotless_experiments.studies.parallel import measure, simulated

    campaign = ProgramCampaign.from_options(common, options)
    chosen = cases(campaign, options)
    return campaign.campaign(chosen, live=measure.live, virtual=simulated.virtual)


EXPERIMENT = Experiment(
    name="parallel",
    summary="PingPong, SendRecv, Alltoall and Barrier by Open MPI in the hosts of a fabric.",
    example="sudo knotless run parallel --measurements alltoall,barrier --engines updown,dor",
    options=(
        *program_options(least_processes=2),
        list_option("--measurements", f"Some of {','.join(MEASUREMENTS)} (default: all)."),
        click.Option(
            ["--sizes"],
            metavar="BYTES,...",
            help=f"Message sizes in bytes (default: {','.join(map(str, SIZES))}).",
        ),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION, SIMULATION),
)
