"""The cases of the NAS experiment: kernels, fabrics, routes, classes, numbers of processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knotless.base.name_lists import choice
from knotless_experiments.framework.experiment import SIMULATION
from knotless_experiments.messages.nas_kernels import find, kernels
from knotless_experiments.messages.nas_kernels.kernel import KernelError
from knotless_experiments.workloads.program_campaign import ProgramCampaign, ProgramCase


@dataclass(frozen=True)
class Case(ProgramCase):
    """A kernel of a class, on a fabric."""

    kernel: str
    problem_class: str

    @property
    def program(self) -> Sequence[str | int]:
        """The kernel and its class."""
        return [self.kernel, self.problem_class]

    def __str__(self) -> str:
        """Describe the case for progress bars and errors."""
        kernel = f"{self.kernel.upper()}.{self.problem_class}"
        return f"{kernel} on {self.processes} hosts of {self.routed.spec}, {self.routed.routes}"


def cases(campaign: ProgramCampaign, options: Mapping[str, Any]) -> list[Case]:
    """Return the cases in running order; raises KnotlessError before anything is started.

    By default the kernels are those that have work for all processes.
    """
    problem_class, processes = options["problem_class"], campaign.processes
    if options["kernels"] is None:
        chosen = _able(problem_class, processes)
    else:
        chosen = list(choice(options["kernels"], list(kernels()), "--kernels"))
        for kernel in chosen:
            find(kernel, problem_class, processes)
    pairs = [(routed, kernel) for routed in campaign.routes for kernel in chosen]
    if campaign.common.on == SIMULATION:
        pairs.sort(key=lambda pair: chosen.index(pair[1]))  # one recording serves all fabrics
    return [
        Case(routed, processes, repeat, kernel, problem_class)
        for routed, kernel in pairs
        for repeat in campaign.repeated()
    ]


def _able(problem_class: str, processes: int) -> list[str]:
    """Return the kernels that can use all processes; raises the last one's error if none can."""
    names = []
    refused: KernelError | None = None
    for kernel in kernels():
        try:
            names.append(find(kernel, problem_class, processes).name)
        except KernelError as error:
            refused = error
    if refused is not None and not names:
        raise refused
    return names
