"""Campaigns of cases on fabrics: one fabric after the other, and on each its cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from experiments.framework.experiment import EMULATION, Progress, Record
from experiments.framework.routed import Measured, Routed, in_time

if TYPE_CHECKING:
    from emulation.network import EmulatedFabric


class OnFabric(Protocol):
    """A case: what it runs on; ``str()`` of it is shown while it runs."""

    @property
    def routed(self) -> Routed:
        """The fabric and its routes."""


Case = TypeVar("Case", bound=OnFabric)


@dataclass(frozen=True)
class Campaign(Generic[Case]):
    """Cases, those of one fabric together, and how one of them is measured.

    ``live(lab, case, seed)`` measures on a running fabric, ``virtual(case, seed)`` without;
    an experiment that has no ``virtual`` needs the fabric wherever it runs, one that has no
    ``live`` is not emulated.
    Every case has a seed of its own; repeats in the simulator have the same one, to show that
    they give the same result.
    """

    on: str
    cases: Sequence[Case]
    parameters: Mapping[str, Any]
    seed: int
    live: Callable[[EmulatedFabric, Case, int], Measured] | None = None
    virtual: Callable[[Case, int], Measured] | None = None

    @property
    def steps(self) -> int:
        """A step for each case, and one for each fabric that is started."""
        fabrics = len(list(groupby(self.cases, key=lambda case: case.routed)))
        return len(self.cases) + (fabrics if self._without_fabric is None else 0)

    @property
    def _without_fabric(self) -> Callable[[Case, int], Measured] | None:
        """What measures where no fabric has to run."""
        return None if self.on == EMULATION else self.virtual

    def run(self, record: Record, progress: Progress) -> None:
        """Measure every case."""
        rows = 0

        def keep(measured: Measured) -> None:
            nonlocal rows
            row, samples = measured
            record(row, [{"row": rows, **line} for line in samples])
            rows += 1
            progress.advance()

        if (virtual := self._without_fabric) is not None:
            for case in self.cases:
                progress.begin(str(case))
                keep(virtual(case, self.seed))
            return
        live = self.live
        assert live is not None  # noqa: S101 - an experiment's places say whether it is emulated
        for routed, cases in groupby(self.cases, key=lambda case: case.routed):
            progress.begin(f"starting {routed.name}, {routed.routes}")
            with routed.running() as lab:
                progress.advance()
                for case in cases:
                    progress.begin(str(case))
                    seed = self.seed + rows

                    def measure(case: Case = case, seed: int = seed) -> Measured:
                        return live(lab, case, seed)

                    keep(in_time(measure))
