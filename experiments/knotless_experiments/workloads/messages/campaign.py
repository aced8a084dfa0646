"""Settings and options shared by the experiments on messages between two hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import click

from knotless.cli.numbers import Whole
from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    ExperimentError,
    Progress,
    Record,
)
from knotless_experiments.framework.options import numbers
from knotless_experiments.framework.routed import Measured
from knotless_experiments.messages.logp import LogP
from knotless_experiments.workloads.logp_options import costs_of, overhead_options

if TYPE_CHECKING:
    from knotless.routing.plan import Plan
    from knotless_experiments.workloads.messages.pair import Exchanging


SIZES, QUICK_SIZES = (8, 64, 256, 1024, 4096, 16384), (8, 1024)
COUNT, QUICK_COUNT = 100, 20


@dataclass(frozen=True)
class MessageCampaign:
    """Sizes in bytes, and the plan; each experiment adds its cases and how it measures one.

    ``fabric`` and ``engine`` are as given by the user.
    """

    on: str
    fabric: str
    engine: str
    plan: Plan
    hosts: str | None
    sizes: Sequence[int]
    count: int
    repeats: int
    costs: LogP
    """The costs of simulated processors; L and g are the network's."""

    @classmethod
    def from_options(cls, common: Common, options: Mapping[str, Any], longest: int) -> Self:
        """Check the settings; raises ExperimentError or another KnotlessError."""
        from knotless.emulation.wiring import wire
        from knotless.routing.plan import make_plan
        from knotless.topologies import load
        from knotless_experiments.workloads.messages import pair

        if common.duration_s is not None or common.rate_mbps is not None:
            raise ExperimentError("--duration and --rate: use --count, and rates in the fabric")
        fabric = load(options["fabric"])
        pair.chosen(fabric, options["hosts"])
        if common.on == EMULATION:
            wire(fabric)
        text = options["sizes"]
        default, times = (QUICK_SIZES, QUICK_COUNT) if common.quick else (SIZES, COUNT)
        return cls(
            on=common.on,
            fabric=options["fabric"],
            engine=options["engine"],
            plan=make_plan(fabric, options["engine"]),
            hosts=options["hosts"],
            sizes=tuple(numbers(text, default, (1, longest), "--sizes")),
            count=options["count"] or times,
            repeats=common.repeats,
            costs=costs_of(options),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the settings that determine the run."""
        given = {"send_us": self.costs.send_us, "receive_us": self.costs.receive_us}
        return {
            "on": self.on,
            **(given if self.on == SIMULATION else {}),
            "fabric": self.fabric,
            "engine": self.engine,
            "hosts": self.hosts,
            "sizes": list(self.sizes),
            "count": self.count,
        }

    def running(self, say: Callable[[str], None]) -> AbstractContextManager[Exchanging]:
        """Return a context manager for the fabric and its two hosts."""
        from knotless_experiments.workloads.messages import pair

        return pair.running(self.on, self.plan, self.hosts, self.costs, say)

    def cases(self) -> list[tuple[str, int]]:
        """Return what is measured at which size, as often as it is repeated."""
        raise NotImplementedError

    def measure(self, pair: Exchanging, what: str, size: int) -> Measured:
        """Return the row of a case, and its samples without ``row``."""
        raise NotImplementedError

    def run(self, record: Record, progress: Progress) -> None:
        """Measure case after case."""
        progress.begin(f"starting {self.fabric}")
        with self.running(progress.begin) as pair:
            progress.advance()
            for number, (what, size) in enumerate(self.cases()):
                progress.begin(f"{what}, {size} bytes")
                row, times = self.measure(pair, what, size)
                record(row, [{"row": number, **line} for line in times])
                progress.advance()

    @property
    def steps(self) -> int:
        """One step for the fabric, and one per case."""
        return 1 + len(self.cases())


def fabric_options() -> tuple[click.Option, ...]:
    """Return the options of the place; new ones for each experiment."""
    return (
        click.Option(["--fabric"], default="flat,2", show_default=True, metavar="SPEC"),
        click.Option(["--engine"], default="updown", show_default=True, help="Routing engine."),
        click.Option(["--hosts"], metavar="A,B", help="The two hosts (default: first and last)."),
        click.Option(
            ["--sizes"],
            metavar="BYTES,...",
            help=f"Of messages (default: {','.join(map(str, SIZES))}).",
        ),
        click.Option(
            ["--count"],
            type=Whole(10, 1_000_000),
            help=f"Round trips of each size (default: {COUNT}).",
        ),
        *overhead_options(),
    )
