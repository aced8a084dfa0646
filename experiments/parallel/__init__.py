"""Message passing by Open MPI on fabrics: PingPong, SendRecv, Alltoall, Barrier over sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from experiments.experiment import EMULATION, Common, Experiment, ExperimentError

if TYPE_CHECKING:
    from experiments.campaign import Campaign
    from experiments.experiment import Presentation
    from experiments.parallel.measure import Case

MEASUREMENTS = ("pingpong", "sendrecv", "alltoall", "barrier")
SIZES = "64,1024,16384"
QUICK_SIZES = "64,16384"
MOST_BYTES = 1 << 24
REPETITIONS = 10
QUICK_REPETITIONS = 5


def sizes_of(text: str) -> list[int]:
    """Read sizes such as ``64,1024``; raises ExperimentError."""
    found = []
    for part in text.split(","):
        if not (part.strip().isascii() and part.strip().isdigit()):
            raise ExperimentError(f"--sizes: {part[:40]!r} is no number of bytes, such as 64,1024")
        found.append(int(part.strip()[:12]))
        if not 1 <= found[-1] <= MOST_BYTES:
            raise ExperimentError(f"--sizes: {found[-1]} is not within 1..{MOST_BYTES} bytes")
    return found


def cases(common: Common, options: Mapping[str, Any]) -> list[Case]:
    """Return the cases in running order; raises KnotlessError before anything is built."""
    from experiments.nas.cases import choose, grounds, hosts_enough
    from experiments.parallel.measure import Case

    quick = common.quick
    chosen = choose(options["measurements"], MEASUREMENTS, "--measurements")
    sizes = sizes_of(options["sizes"] or (QUICK_SIZES if quick else SIZES))
    fabrics = options["fabric"] or (("mesh,2,2",) if quick else ("torus,4,4",))
    processes = options["processes"] or (4 if quick else 16)
    routes = grounds(common, options, fabrics)
    for routed in routes:
        hosts_enough(routed, processes)
    repetitions = QUICK_REPETITIONS if quick else REPETITIONS
    return [
        Case(routed, name, size, processes, repetitions, repeat)
        for routed in routes
        for name in chosen
        for size in ([0] if name == "barrier" else sizes)
        for repeat in range(1, common.repeats + 1)
    ]


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    from experiments import openmpi
    from experiments.campaign import Campaign
    from experiments.parallel import measure

    if common.duration_s is not None:
        raise ExperimentError("--duration: each size is repeated a fixed number of times")
    chosen = cases(common, options)
    openmpi.require_openmpi()

    def virtual(case: Case, _seed: int) -> Any:
        raise ExperimentError(f"{case}: it runs on emulation")

    parameters = {
        "on": common.on,
        "cases": [
            [case.routed.spec, case.routed.routes, case.measurement, case.message_bytes]
            for case in chosen
        ],
        "processes": chosen[0].processes,
        "seed": common.seed,
    }
    return Campaign(
        on=common.on,
        cases=chosen,
        parameters=parameters,
        live=lambda lab, case, _seed: measure.live(lab, case),
        virtual=virtual,
        seed=common.seed,
    )


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Show a run; see :mod:`experiments.parallel.show`."""
    from experiments.parallel import show

    return show.present(run, samples, draw)


EXPERIMENT = Experiment(
    name="parallel",
    summary="PingPong, SendRecv, Alltoall and Barrier by Open MPI in the hosts of a fabric.",
    example="sudo knotless run parallel --measurements alltoall,barrier --engines updown,dor",
    options=(
        click.Option(["--fabric"], multiple=True, metavar="SPEC", help="One or more fabrics."),
        click.Option(
            ["--engines"],
            default="native",
            show_default=True,
            help="Engines; NAME:N for N virtual channels.",
        ),
        click.Option(
            ["--measurements"],
            default=",".join(MEASUREMENTS),
            show_default=True,
            help="Some of these.",
        ),
        click.Option(["--sizes"], metavar="BYTES,...", help=f"Of messages (default: {SIZES})."),
        click.Option(["--processes"], type=click.IntRange(2, 4096), help="One in each host."),
    ),
    sample_types={"row": "int32", "repetition": "int32", "time_us": "double"},
    prepare=prepare,
    present=present,
    places=(EMULATION,),
)
