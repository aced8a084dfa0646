"""The kernels of the NAS Parallel Benchmarks on fabrics (Koibuchi et al. run them, section 4).

Written from the published specification in NumPy; see
:mod:`knotless_experiments.messages.nas_kernels`. On the emulated fabric each process is one of Open
MPI in a host of its own. In simulation the kernel is run by threads, and its messages are replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knotless.cli.numbers import Number
from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
    ExperimentError,
)
from knotless_experiments.studies.nas.columns import COLUMNS
from knotless_experiments.workloads.program_campaign import ProgramCampaign, program_options

if TYPE_CHECKING:
    from knotless_experiments.framework.campaign import Campaign
    from knotless_experiments.studies.nas.cases import Case


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    from knotless_experiments.studies.nas import cases, measure

    campaign = ProgramCampaign.from_options(common, options)
    chosen = cases.cases(campaign, options)
    traces = Path(options["traces"]) if options["traces"] else None
    if traces is not None and not traces.is_dir():
        raise ExperimentError(f"--traces {options['traces']!r}: there is no such folder")
    computing = options.get("computing") or 0.0
    if computing and common.on == EMULATION:
        raise ExperimentError("--computing: emulated processes always compute")
    planned = campaign.campaign(
        chosen,
        live=lambda lab, case: measure.live(lab, case, traces),
        virtual=lambda case: measure.virtual(case, traces, computing),
    )
    return replace(planned, parameters={**planned.parameters, "computing": computing})


EXPERIMENT = Experiment(
    name="nas",
    summary="NAS kernels (IS, CG, EP, FT, MG, LU) by MPI on a fabric: time, volume, pattern.",
    example="sudo knotless run nas --kernels cg,mg --engines updown,dl --fabric torus,4,4",
    options=(
        *program_options(least_processes=1),
        click.Option(
            ["--kernels"],
            metavar="LIST",
            help="Some of is,cg,ep,ft,mg,lu (default: all that can use the processes).",
        ),
        click.Option(
            ["--class", "problem_class"], default="S", show_default=True, help="S, or larger: W."
        ),
        click.Option(["--traces"], metavar="DIR", help="Keep what each process sent and received."),
        click.Option(
            ["--computing"],
            type=Number(0, 1000),
            default=0.0,
            show_default=True,
            help="Simulation: a factor for the recorded times of computing.",
        ),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION, SIMULATION),
)
