"""Which kernels run where: fabrics, routes, classes, numbers of processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.framework.experiment import SIMULATION
from experiments.framework.options import choice
from experiments.workloads.nas_kernels import KERNELS, find
from experiments.workloads.nas_kernels.kernel import KernelError
from experiments.workloads.programs.campaign import ProgramCampaign, ProgramCase


@dataclass(frozen=True)
class Case(ProgramCase):
    """One kernel, of one class."""

    kernel: str
    problem_class: str

    @property
    def program(self) -> Sequence[str | int]:
        """The kernel and its class."""
        return [self.kernel, self.problem_class]

    def __str__(self) -> str:
        """Return it as a reader meets it in progress bars and errors."""
        kernel = f"{self.kernel.upper()}.{self.problem_class}"
        return f"{kernel} on {self.processes} hosts of {self.routed.spec}, {self.routed.routes}"


def cases(campaign: ProgramCampaign, options: Mapping[str, Any]) -> list[Case]:
    """Return the cases in running order; raises KnotlessError before anything is built.

    Where no kernels are named, they are those that have work for all processes.
    """
    problem_class, processes = options["problem_class"], campaign.processes
    if options["kernels"] is None:
        kernels = _able(problem_class, processes)
    else:
        kernels = list(choice(options["kernels"], list(KERNELS), "--kernels"))
        for kernel in kernels:
            find(kernel, problem_class, processes)
    pairs = [(routed, kernel) for routed in campaign.routes for kernel in kernels]
    if campaign.common.on == SIMULATION:
        pairs.sort(key=lambda pair: kernels.index(pair[1]))  # one recording serves all fabrics
    return [
        Case(routed, processes, repeat, kernel, problem_class)
        for routed, kernel in pairs
        for repeat in campaign.repeated()
    ]


def _able(problem_class: str, processes: int) -> list[str]:
    """Return the kernels that can use the processes; raises what the last says when none can."""
    found = []
    refused: KernelError | None = None
    for kernel in KERNELS:
        try:
            found.append(find(kernel, problem_class, processes).name)
        except KernelError as error:
            refused = error
    if refused is not None and not found:
        raise refused
    return found
