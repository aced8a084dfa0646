"""The measurements of message passing on a running fabric."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from knotless_experiments.framework.experiment import EMULATION
from knotless_experiments.framework.routed import Measured, with_validity
from knotless_experiments.messages.programs import mpi_run
from knotless_experiments.studies.parallel.program import RESULT
from knotless_experiments.workloads.program_campaign import ProgramCase

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

WARM = 2
LIMIT_S = 300.0


@dataclass(frozen=True)
class Case(ProgramCase):
    """A measurement with messages of one size, repeated."""

    measurement: str
    message_bytes: int
    repetitions: int

    @property
    def program(self) -> Sequence[str | int]:
        """The measurement and its size."""
        return [self.measurement, self.message_bytes]

    def __str__(self) -> str:
        """Describe the case for progress bars and errors."""
        size = f" of {self.message_bytes} bytes" if self.message_bytes else ""
        return f"{self.measurement}{size} on {self.routed.spec}, {self.routed.routes}"


def moved_bytes(case: Case) -> int:
    """Return the payload that each participating process sends in the reported time."""
    copies = {"alltoall": case.processes - 1, "barrier": 0}.get(case.measurement, 1)
    return copies * case.message_bytes


def live(lab: EmulatedFabric, case: Case) -> Measured:
    """Run one measurement by MPI in the hosts of a running fabric."""
    word = f"{case.measurement}:{case.message_bytes}"

    def read(folder: Path) -> list[float]:
        seconds_of: dict[str, list[float]] = json.loads(
            (folder / RESULT).read_text(encoding="utf-8")
        )
        return seconds_of[word]

    outcome = mpi_run.run(
        lab,
        case.hosts,
        "knotless_experiments.studies.parallel.program",
        [str(WARM), str(case.repetitions), word],
        read,
        limit_s=LIMIT_S,
    )
    row = row_of(EMULATION, case, outcome.result or [])
    row |= {"deadlock": bool(outcome.cycle), "cycle": outcome.cycle}
    samples = [
        {"repetition": number, "time_us": 1e6 * seconds}
        for number, seconds in enumerate(outcome.result or [])
    ]
    return with_validity(row, outcome.status, list(outcome.problems)), samples


def row_of(on: str, case: Case, seconds: Sequence[float]) -> dict[str, Any]:
    """Return the row of a case from the times of its repetitions."""
    # A round trip is two messages; by convention PingPong reports the time of one.
    share = 0.5 if case.measurement == "pingpong" else 1.0
    times_us = [1e6 * share * each for each in seconds]
    middle_us = median(times_us) if times_us else None
    moved = moved_bytes(case)
    return {
        **case.row(on),
        "measurement": case.measurement,
        "bytes": case.message_bytes,
        "repetitions": len(times_us),
        "time_us": None if middle_us is None else round(middle_us, 3),
        "min_us": round(min(times_us), 3) if times_us else None,
        "max_us": round(max(times_us), 3) if times_us else None,
        "mbps": round(8 * moved / middle_us, 4) if middle_us and moved else None,
    }
