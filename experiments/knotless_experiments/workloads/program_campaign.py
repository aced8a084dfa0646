"""Places, settings and options shared by the experiments on parallel programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from knotless.base.engine_name import AUTO_ENGINE
from knotless.cli.numbers import Whole
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric, Host, hosts_across_switches
from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import EMULATION, SIMULATION, Common, ExperimentError
from knotless_experiments.framework.options import within
from knotless_experiments.framework.routed import Measured, Routed, with_options

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

LIMITS_MBPS = (1.0, 1e6)
FAST = {"rate": 20.0, "delay": 2000.0}
"""Default links (Mbit/s, us) for few hosts, and in simulation."""
SLOW = {"rate": 5.0, "delay": 5000.0}
"""Default links for many emulated hosts: with 16 on fast links, a small machine is stretched."""
MOST_PROCESSES = 4096
USUAL_PROCESSES = {EMULATION: 16, SIMULATION: 64}
QUICK_PROCESSES = {EMULATION: 4, SIMULATION: 16}


@dataclass(frozen=True)
class ProgramCase:
    """A program on a number of processes; subclasses define the program."""

    routed: Routed
    processes: int
    repeat: int

    @property
    def places(self) -> list[int]:
        """The index of each process's host."""
        return places(self.routed.fabric, self.processes)

    @property
    def hosts(self) -> list[Host]:
        """The host of each process."""
        return [self.routed.fabric.hosts[place] for place in self.places]

    @property
    def program(self) -> Sequence[str | int]:
        """The program's name and arguments, for the parameters of the run."""
        raise NotImplementedError

    def row(self, on: str) -> dict[str, Any]:
        """Return the keys that describe the case in every row."""
        return {
            "on": on,
            "fabric": self.routed.spec,
            "engine": self.routed.plan.engine,
            "vcs": self.routed.plan.vcs,
            "routes": self.routed.routes,
            "processes": self.processes,
            "repeat": self.repeat,
        }


Case = TypeVar("Case", bound=ProgramCase)


def places(fabric: Fabric, processes: int) -> list[int]:
    """Return one host per process, spread evenly over the switches.

    With half as many processes as hosts, half of each switch's hosts have one, so that the whole
    network is used (paper 000, section 4.1). Processes are numbered in the order of hosts.
    """
    return sorted(hosts_across_switches(fabric)[:processes])


@dataclass(frozen=True)
class ProgramCampaign:
    """Fabrics with their routes, planned, and the processes that run on each."""

    common: Common
    routes: Sequence[Routed]
    processes: int

    @classmethod
    def from_options(cls, common: Common, options: Mapping[str, Any]) -> Self:
        """Check the settings; raises ExperimentError or another KnotlessError."""
        if common.duration_s is not None:
            raise ExperimentError("--duration: a program runs until it ends")
        processes = (QUICK_PROCESSES if common.quick else USUAL_PROCESSES)[common.on]
        default = {4: "mesh,2,2", 16: "torus,4,4", 64: "torus,8,8"}[processes]
        processes = options["processes"] or processes
        links = FAST if common.quick or common.on == SIMULATION else SLOW
        rate_mbps = links["rate"] if common.rate_mbps is None else common.rate_mbps
        links = {**links, "rate": within(rate_mbps, LIMITS_MBPS, "--rate", "Mbit/s")}
        routes = [
            Routed(with_options(spec, **links), PlanRequest.from_name(engine.strip()))
            for spec in options["fabric"] or (default,)
            for engine in options["engines"].split(",")
        ]
        for routed in routes:
            hosts = len(routed.fabric.hosts)
            if processes > hosts:
                raise ExperimentError(
                    f"--processes {processes}: {routed.fabric.name} has {hosts} hosts, "
                    "and each has one"
                )
            _ = routed.plan
        return cls(common, routes, processes)

    def repeated(self) -> list[int]:
        """Return the numbers of the repeats."""
        return list(range(1, self.common.repeats + 1))

    def campaign(
        self,
        cases: Sequence[Case],
        live: Callable[[EmulatedFabric, Case], Measured],
        virtual: Callable[[Case], Measured],
    ) -> Campaign[Case]:
        """Return the campaign of the cases; raises OpenMpiError if Open MPI is missing."""
        from knotless_experiments.messages.programs import openmpi

        if self.common.on == EMULATION:
            openmpi.require_openmpi()
        return Campaign(
            on=self.common.on,
            cases=cases,
            parameters={
                "on": self.common.on,
                "cases": [[case.routed.spec, case.routed.routes, *case.program] for case in cases],
                "processes": self.processes,
                "seed": self.common.seed,
            },
            live=lambda lab, case, _seed: live(lab, case),
            virtual=lambda case, _seed: virtual(case),
            seed=self.common.seed,
        )


def program_options(least_processes: int) -> tuple[click.Option, ...]:
    """Return the options of the place; new ones for each experiment."""
    return (
        click.Option(["--fabric"], multiple=True, metavar="SPEC", help="One or more fabrics."),
        click.Option(
            ["--engines"],
            default=AUTO_ENGINE,
            show_default=True,
            help="Engines; NAME:N for N virtual channels.",
        ),
        click.Option(
            ["--processes"],
            type=Whole(least_processes, MOST_PROCESSES),
            help="At most one per host, spread evenly over the switches.",
        ),
    )


def testbed_of(row: Mapping[str, Any]) -> str:
    """Return the name of a row's fabric and routes in tables and plots."""
    return f"{Routed(row['fabric']).name}, {row['routes']}"
