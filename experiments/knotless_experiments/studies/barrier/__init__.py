"""Barrier experiment: tables of Iwasaki et al. (algorithms) and Koibuchi et al. (routings).

The same state machines (core/messages/barrier) run as real processes in the hosts of an emulated
fabric, and in the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import click

from knotless.base.quantities import MICROSECONDS
from knotless.cli.numbers import Number, Whole
from knotless.emulation.wiring import wire
from knotless.topologies import load
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
from knotless_experiments.messages.logp import LogP
from knotless_experiments.workloads.barriers.case import Case, Settings, cases, members
from knotless_experiments.workloads.barriers.columns import COLUMNS
from knotless_experiments.workloads.logp_options import costs_of, logp_options

DEFAULT_BARRIERS = 100
QUICK_BARRIERS = 10
RATES_MBPS = (0.01, 1e6)


@dataclass(frozen=True)
class BarrierCampaign:
    """The cases, places and settings of a run."""

    on: str
    cases: Sequence[Case]
    settings: Settings

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the settings that determine the run."""
        return {
            "on": self.on,
            **asdict(self.settings),
            "cases": [
                [str(case.testbed), case.algorithm, case.hosts, case.repeat] for case in self.cases
            ],
        }

    @property
    def steps(self) -> int:
        """One step per fabric configuration, shared by consecutive cases, and one per case."""
        return len(self.cases) + len(list(groupby(self.cases, key=lambda case: case.testbed)))

    def run(self, record: Record, progress: Progress) -> None:
        """Run all cases, grouped by fabric configuration."""
        from knotless_experiments.workloads.barriers import measure

        row = 0
        for testbed, of_ground in groupby(self.cases, key=lambda case: case.testbed):
            here = list(of_ground)
            progress.begin(f"building {testbed}")
            with measure.built(self.on, testbed, self.settings, here, progress.begin) as place:
                progress.advance()
                costs: dict[int | None, LogP] = {}
                for case in here:
                    progress.begin(str(case))
                    if case.hosts not in costs:
                        costs[case.hosts] = measure.costs(place, case, self.settings.seed)
                    outcome, lines = measure.run(
                        place, self.on, case, self.settings, costs[case.hosts]
                    )
                    record(outcome, [{"row": row, **line} for line in lines])
                    progress.advance()
                    row += 1


def prepare(common: Common, options: Mapping[str, Any]) -> BarrierCampaign:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    barriers = options["barriers"]
    if barriers is None:
        barriers = QUICK_BARRIERS if common.quick else DEFAULT_BARRIERS
    if common.rate_mbps is not None:
        within(common.rate_mbps, RATES_MBPS, "--rate", "Mbit/s")
    if common.duration_s is not None:
        raise ExperimentError("--duration: give a number of --barriers instead")
    settings = Settings(
        barriers=barriers,
        lists=options["lists"],
        computing_us=options["computing"],
        costs=costs_of(options),
        message_bytes=options["message_bytes"],
        cut_through=options["cut_through"],
        rate_mbps=common.rate_mbps,
        delay_us=options["delay"],
        seed=common.seed,
    )
    fabrics = options["fabric"] or ("flat,32",)
    chosen = cases(
        fabrics,
        options["engines"],
        options["algorithms"],
        options["hosts"],
        options["networks"],
        common.repeats,
    )
    for case in chosen:
        members(load(case.testbed.spec), case.hosts)
    for testbed in dict.fromkeys(case.testbed for case in chosen):
        plan = testbed.plan(settings)
        if common.on == EMULATION:
            wire(plan.fabric)
    return BarrierCampaign(common.on, chosen, settings)


EXPERIMENT = Experiment(
    name="barrier",
    summary="Barriers of all hosts: the effect of the algorithm, the routing and the network.",
    example="knotless run barrier --fabric flat,32 --rate 100 --delay 2.03 --hosts 4,8,16,32",
    options=(
        click.Option(
            ["--fabric"],
            multiple=True,
            metavar="SPEC",
            help="Fabric; may be repeated (default: flat,32).",
        ),
        click.Option(
            ["--engines"],
            default="updown",
            show_default=True,
            help="Routing engines, such as prefix,updown,dl:2 (with two virtual channels).",
        ),
        click.Option(["--algorithms"], help="Some of shuffle, tree2, ... (default: all)."),
        click.Option(["--hosts"], help="Numbers of hosts, such as 4,8,16 (default: all)."),
        click.Option(
            ["--networks"],
            default="1",
            show_default=True,
            help="1, 2 or 1,2: hosts with an interface on one fabric, or on each of two.",
        ),
        click.Option(
            ["--barriers"],
            type=Whole(1, 1_000_000),
            help="Barriers of a run (default: 100).",
        ),
        click.Option(
            ["--lists"],
            type=Whole(0, 1000),
            default=0,
            show_default=True,
            help="Random visiting lists of unicast, --barriers each; 0: the order of the hosts.",
        ),
        click.Option(
            ["--computing"],
            type=Number(0, 1e6, unit=MICROSECONDS),
            default=30.0,
            show_default=True,
            help="Time between two barriers.",
        ),
        click.Option(
            ["--delay"],
            type=Number(0, 1e6, unit=MICROSECONDS),
            help="Delay of every link.",
        ),
        *logp_options(),
        click.Option(
            ["--bytes", "message_bytes"],
            type=Whole(8, 1500),
            default=46,
            show_default=True,
            help="Simulation: payload of a message.",
        ),
        click.Option(
            ["--cut-through"],
            type=Whole(0, 1500),
            default=0,
            show_default=True,
            help="Simulation: switches forward after this many bytes; 0: after all.",
        ),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(SIMULATION, EMULATION),
)
