"""The kernels of the NAS Parallel Benchmarks on fabrics (Koibuchi et al. run them, section 4).

Written from the published specification in NumPy; see :mod:`experiments.nas.kernels`. On the
emulated fabric each process is one of Open MPI in a host of its own. In simulation the
kernel is run by threads, and its messages are replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.experiment import EMULATION, SIMULATION, Common, Experiment, ExperimentError

if TYPE_CHECKING:
    from experiments.campaign import Campaign
    from experiments.experiment import Presentation
    from experiments.nas.cases import Case


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    from experiments import openmpi
    from experiments.campaign import Campaign
    from experiments.nas import cases, measure

    if common.duration_s is not None:
        raise ExperimentError("--duration: a kernel runs until it is done")
    chosen = cases.cases(common, options)
    if common.on == EMULATION:
        openmpi.require_openmpi()
    traces = Path(options["traces"]) if options["traces"] else None
    if traces is not None and not traces.is_dir():
        raise ExperimentError(f"--traces {options['traces']!r}: there is no such folder")
    parameters = {
        "on": common.on,
        "cases": [
            [case.routed.spec, case.routed.routes, case.kernel, case.problem_class, case.processes]
            for case in chosen
        ],
        "seed": common.seed,
    }
    return Campaign(
        on=common.on,
        cases=chosen,
        parameters=parameters,
        live=lambda lab, case, _seed: measure.live(lab, case, traces),
        virtual=lambda case, _seed: measure.virtual(case, traces),
        seed=common.seed,
    )


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Show a run; see :mod:`experiments.nas.show`."""
    from experiments.nas import show

    return show.present(run, samples, draw)


EXPERIMENT = Experiment(
    name="nas",
    summary="NAS kernels (IS, CG, EP, FT, MG, LU) by MPI on a fabric: time, volume, pattern.",
    example="sudo knotless run nas --kernels cg,mg --engines updown,dl --fabric torus,4,4",
    options=(
        click.Option(["--fabric"], multiple=True, metavar="SPEC", help="One or more fabrics."),
        click.Option(
            ["--engines"],
            default="native",
            show_default=True,
            help="Engines; NAME:N for N virtual channels.",
        ),
        click.Option(
            ["--kernels"], default="is,cg,ep,ft,mg,lu", show_default=True, help="Some of these."
        ),
        click.Option(
            ["--class", "problem_class"], default="S", show_default=True, help="S, or larger: W."
        ),
        click.Option(
            ["--processes"], type=click.IntRange(1, 4096), help="A power of two; one a host."
        ),
        click.Option(["--traces"], metavar="DIR", help="Keep what each process sent and received."),
    ),
    sample_types={
        "row": "int32",
        "source": "int32",
        "destination": "int32",
        "messages": "int64",
        "bytes": "int64",
    },
    prepare=prepare,
    present=present,
    places=(EMULATION, SIMULATION),
)
