"""The LogP experiment: what a message costs, and barriers by that (Iwasaki et al., 5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import click

from knotless.base.quantities import MICROSECONDS
from knotless.cli.numbers import Number, Whole
from knotless.emulation.wiring import wire
from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
    ExperimentError,
    Progress,
    Record,
)
from knotless_experiments.framework.options import within
from knotless_experiments.messages.logp import ALGORITHMS, barrier_us
from knotless_experiments.studies.logp.columns import COLUMNS
from knotless_experiments.workloads.logp_options import costs_of, logp_options

if TYPE_CHECKING:  # that package needs the formulas of this one
    from knotless_experiments.workloads.barriers.case import Case, Settings

PAIRS, QUICK_PAIRS, MAX_PAIRS = 8, 2, 10_000
LIMITS_MBPS = (0.001, 1e6)
_SIMULATED_BARRIERS = 10


@dataclass(frozen=True)
class LogPCampaign:
    """The pairs of hosts to measure, and where."""

    on: str
    case: Case
    settings: Settings
    pairs: Sequence[tuple[str, str]]

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the settings that determine the run."""
        return {
            "on": self.on,
            "ground": str(self.case.testbed),
            "pairs": [list(pair) for pair in self.pairs],
            "given": asdict(self.settings.costs) if self.on == SIMULATION else {},
        }

    @property
    def steps(self) -> int:
        """The fabric, and each pair."""
        return 1 + len(self.pairs)

    def run(self, record: Record, progress: Progress) -> None:
        """Measure pair after pair."""
        from knotless_experiments.workloads.barriers import measure

        testbed = self.case.testbed
        progress.begin(f"building {testbed}")
        with measure.built(self.on, testbed, self.settings, [self.case], progress.begin) as place:
            progress.advance()
            hosts = len(place.plan.fabric.hosts)
            for number, (source, target) in enumerate(self.pairs):
                progress.begin(f"{source} and {target}")
                place.pace()
                with place.watched() as programs:
                    costs = place.pair(source, target)
                stretch, problems = place.pace()
                row = {
                    "on": self.on,
                    "fabric": testbed.spec,
                    "engine": testbed.request.engine,
                    "pair": f"{source}-{target}",
                    "switches": len(place.plan.path(source, target)),
                    **{name: round(value, 3) for name, value in asdict(costs).items()},
                    "one_way_us": round(costs.one_way_us, 3),
                    "hosts": hosts,
                    "predicted_us": {
                        name: round(barrier_us(name, hosts, costs), 3) for name in ALGORITHMS
                    },
                    "stretch": stretch,
                    "real_time_programs": programs,
                    "valid": not problems,
                    "problems": problems,
                }
                samples = [
                    {"row": number, "parameter": name, "us": value}
                    for name, value in asdict(costs).items()
                ]
                record(row, samples)
                progress.advance()


def prepare(common: Common, options: Mapping[str, Any]) -> LogPCampaign:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    from knotless.routing.request import PlanRequest
    from knotless_experiments.workloads.barriers.case import Case, Settings, Testbed, members

    if common.duration_s is not None:
        raise ExperimentError("--duration: say how many --pairs instead")
    if common.rate_mbps is not None:
        within(common.rate_mbps, LIMITS_MBPS, "--rate", "Mbit/s")
    pairs = options["pairs"] or (QUICK_PAIRS if common.quick else PAIRS)
    settings = Settings(
        barriers=_SIMULATED_BARRIERS,
        lists=0,
        computing_us=0.0,
        costs=costs_of(options),
        message_bytes=46,
        cut_through=0,
        rate_mbps=common.rate_mbps,
        delay_us=options["delay"],
        seed=common.seed,
    )
    testbed = Testbed(options["fabric"], PlanRequest.from_name(options["engine"]), networks=1)
    fabric = testbed.plan(settings).fabric
    if common.on == EMULATION:
        wire(fabric)
    names = members(fabric, None)
    rng = Random(common.seed)  # noqa: S311 - a sample, repeatable, not a secret
    chosen = [rng.sample(names, 2) for _ in range(pairs * common.repeats)]
    return LogPCampaign(
        common.on,
        Case(testbed, "shuffle", None),
        settings,
        [(source, target) for source, target in chosen],
    )


EXPERIMENT = Experiment(
    name="logp",
    summary="What a message costs by LogP (o_s, o_r, L, g), and barriers by that.",
    example="sudo knotless run logp --fabric flat,4 --on emulation",
    options=(
        click.Option(["--fabric"], default="flat,4", show_default=True, metavar="SPEC"),
        click.Option(["--engine"], default="updown", show_default=True, help="Routing engine."),
        click.Option(
            ["--pairs"],
            type=Whole(1, MAX_PAIRS),
            help=f"Pairs of hosts, at random (default: {PAIRS}).",
        ),
        click.Option(
            ["--delay"],
            type=Number(0, 1e6, unit=MICROSECONDS),
            help="Delay of every link.",
        ),
        *logp_options(),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(SIMULATION, EMULATION),
)
