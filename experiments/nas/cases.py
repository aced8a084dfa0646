"""Which kernels run where: fabrics, routes, classes, numbers of processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.experiment import SIMULATION, Common, ExperimentError
from experiments.nas.kernels import KERNELS, find
from experiments.options import within
from experiments.routed import Routed, engine_of, with_options
from topologies.fabric import Host

LIMITS_MBPS = (1.0, 1e6)
FAST = {"rate": 20.0, "delay": 2000.0}
"""Links (Mbit/s, us) where the fabric does not state them: few hosts, or in simulation."""
SLOW = {"rate": 5.0, "delay": 5000.0}
"""Of many hosts that are emulated: a small machine is late with 16 of them on fast links."""


@dataclass(frozen=True)
class Case:
    """One kernel, of one class, on so many processes."""

    routed: Routed
    kernel: str
    problem_class: str
    processes: int
    repeat: int = 1

    @property
    def hosts(self) -> Sequence[Host]:
        """The hosts it runs on: process p on host p."""
        return self.routed.fabric.hosts[: self.processes]

    def __str__(self) -> str:
        """Return it as a reader meets it in progress bars and errors."""
        kernel = f"{self.kernel.upper()}.{self.problem_class}"
        return f"{kernel} on {self.processes} hosts of {self.routed.spec}, {self.routed.routes}"


def choose(text: str, known: Sequence[str], option: str) -> list[str]:
    """Read a choice such as ``a,b``; raises ExperimentError."""
    chosen = [part.strip() for part in text.split(",")]
    for part in chosen:
        if part not in known:
            raise ExperimentError(f"{option}: {part[:40]!r} is none of {', '.join(known)}")
    return chosen


def grounds(common: Common, options: Mapping[str, Any], fabrics: Sequence[str]) -> list[Routed]:
    """Return the fabrics with their routes, planned; raises KnotlessError."""
    usual = FAST if common.quick or common.on == SIMULATION else SLOW
    rate_mbps = usual["rate"] if common.rate_mbps is None else common.rate_mbps
    links = {**usual, "rate": within(rate_mbps, LIMITS_MBPS, "--rate", "Mbit/s")}
    found = [
        Routed(with_options(spec, **links), *engine_of(engine.strip()))
        for spec in fabrics
        for engine in options["engines"].split(",")
    ]
    for routed in found:
        _ = routed.plan
    return found


def hosts_enough(routed: Routed, processes: int) -> None:
    """Raise ExperimentError unless there is a host for each process."""
    there = len(routed.fabric.hosts)
    if processes > there:
        raise ExperimentError(
            f"--processes {processes}: {routed.fabric.name} has {there} hosts, and each has one"
        )


def cases(common: Common, options: Mapping[str, Any]) -> list[Case]:
    """Return the cases in running order; raises KnotlessError before anything is built."""
    quick = common.quick
    fabrics = options["fabric"] or (("mesh,2,2",) if quick else ("torus,4,4",))
    processes = options["processes"] or (4 if quick else 16)
    if common.on == SIMULATION and not options["processes"]:
        fabrics = options["fabric"] or (("torus,4,4",) if quick else ("torus,8,8",))
        processes = 16 if quick else 64
    kernels = choose(options["kernels"], list(KERNELS), "--kernels")
    for kernel in kernels:
        find(kernel, options["problem_class"], processes)
    chosen = grounds(common, options, fabrics)
    for routed in chosen:
        hosts_enough(routed, processes)
    return [
        Case(routed, kernel, options["problem_class"], processes, repeat)
        for routed in chosen
        for kernel in kernels
        for repeat in range(1, common.repeats + 1)
    ]
