"""Campaigns: the cases of an experiment, grouped by fabric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from knotless_experiments.framework import recorded
from knotless_experiments.framework.excluded_runs import SLOWER, too_late_for_tcp
from knotless_experiments.framework.experiment import EMULATION, Progress, Record
from knotless_experiments.framework.real_time import programs_seen
from knotless_experiments.framework.routed import Measured, Routed, slow_down

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric


class OnFabric(Protocol):
    """A case of an experiment on a fabric; ``str()`` describes it during the run."""

    @property
    def routed(self) -> Routed:
        """The fabric and its routes."""


Case = TypeVar("Case", bound=OnFabric)


@dataclass(frozen=True)
class Campaign(Generic[Case]):
    """Cases, grouped by fabric, and the functions that measure one.

    ``live(lab, case, seed)`` measures on a running fabric, ``virtual(case, seed)`` without one.
    An experiment without ``virtual`` needs a running fabric everywhere; one without ``live`` is
    not emulated. Every case has its own seed; in the simulator all repeats have the same one, to
    show that they give the same result.
    """

    on: str
    cases: Sequence[Case]
    parameters: Mapping[str, Any]
    seed: int
    live: Callable[[EmulatedFabric, Case, int], Measured] | None = None
    virtual: Callable[[Case, int], Measured] | None = None

    @property
    def steps(self) -> int:
        """One step per case, and one per fabric that is started."""
        fabrics = len(list(groupby(self.cases, key=lambda case: case.routed)))
        return len(self.cases) + (fabrics if self._without_fabric is None else 0)

    @property
    def _without_fabric(self) -> Callable[[Case, int], Measured] | None:
        """The function that measures without a running fabric, if that is possible."""
        return None if self.on == EMULATION else self.virtual

    def run(self, record: Record, progress: Progress) -> None:
        """Measure all cases."""
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
                with recorded.simulated(rows, str(case)):
                    measured = virtual(case, self.seed)
                keep(measured)
            return
        live = self.live
        assert live is not None  # noqa: S101 - the experiment's places include emulation

        def measure(routed: Routed, cases: Iterable[tuple[int, Case]]) -> list[tuple[int, Case]]:
            """Return the cases for which the machine was too busy, without a row."""
            again = []
            progress.begin(f"starting {routed.name}, {routed.routes}")
            with routed.running() as lab:
                for number, case in cases:
                    progress.begin(str(case))
                    with recorded.emulated(lab, rows, str(case)), programs_seen(lab) as programs:
                        row, samples = live(lab, case, self.seed + number)
                    if too_late_for_tcp(row) and slow_down.get() < SLOWER:
                        again.append((number, case))
                    else:
                        keep(({**row, "real_time_programs": programs}, samples))
            return again

        numbered = enumerate(self.cases)
        for routed, cases in groupby(numbered, key=lambda numbered_case: numbered_case[1].routed):
            again = measure(routed, cases)
            progress.advance()
            if again:
                token = slow_down.set(SLOWER)
                try:
                    measure(routed, again)
                finally:
                    slow_down.reset(token)
