"""What the experiments on messages between two hosts share: their settings and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import click

from experiments.framework.experiment import EMULATION, SIMULATION, Common, ExperimentError
from experiments.workloads.logp import LogP
from experiments.workloads.logp_options import costs_of, overhead_options

if TYPE_CHECKING:
    from experiments.workloads.messages.pair import Exchanging
    from routing.plan import Plan


SIZES, QUICK_SIZES = "8,64,256,1024,4096,16384", "8,1024"
COUNT, QUICK_COUNT = 100, 20


@dataclass(frozen=True)
class MessageCampaign:
    """Sizes in bytes, and the plan; each experiment adds its cases and how it runs them.

    ``fabric`` and ``engine`` are what the user named.
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
    """Of simulated processors; L and g are the network's."""

    @classmethod
    def of(cls, common: Common, options: Mapping[str, Any], longest: int) -> Self:
        """Check the settings; raises ExperimentError or another KnotlessError."""
        from emulation.wiring import wire
        from experiments.workloads.messages import pair
        from routing.plan import make_plan
        from topologies import load

        if common.duration_s is not None or common.rate_mbps is not None:
            raise ExperimentError("--duration and --rate: say --count, and rates in the fabric")
        fabric = load(options["fabric"])
        pair.chosen(fabric, options["hosts"])
        if common.on == EMULATION:
            wire(fabric)
        text = options["sizes"]
        usual, times = (QUICK_SIZES, QUICK_COUNT) if common.quick else (SIZES, COUNT)
        return cls(
            on=common.on,
            fabric=options["fabric"],
            engine=options["engine"],
            plan=make_plan(fabric, options["engine"]),
            hosts=options["hosts"],
            sizes=pair.sizes_of(usual if text is None else text, longest),
            count=options["count"] or times,
            repeats=common.repeats,
            costs=costs_of(options),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what decides the run."""
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
        """Return the fabric to be entered, with its two hosts."""
        from experiments.workloads.messages import pair

        return pair.running(self.on, self.plan, self.hosts, self.costs, say)

    def cases(self) -> list[tuple[str, int]]:
        """Return what is measured at which size, as often as it is repeated."""
        raise NotImplementedError

    @property
    def steps(self) -> int:
        """The fabric, and each case."""
        return 1 + len(self.cases())


def fabric_options() -> tuple[click.Option, ...]:
    """Return the options that say where; a new one for each experiment."""
    return (
        click.Option(["--fabric"], default="flat,2", show_default=True, metavar="SPEC"),
        click.Option(["--engine"], default="updown", show_default=True, help="Routing engine."),
        click.Option(["--hosts"], metavar="A,B", help="The two hosts (default: first and last)."),
        click.Option(["--sizes"], metavar="BYTES,...", help=f"Of messages (default: {SIZES})."),
        click.Option(
            ["--count"],
            type=click.IntRange(10, 1_000_000),
            help=f"Round trips of each size (default: {COUNT}).",
        ),
        *overhead_options(),
    )
