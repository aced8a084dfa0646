"""What one case of the barrier experiment found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

SAMPLE_TYPES = {
    "row": "int32",
    "barrier": "int32",
    "process": "int32",
    "duration_us": "double",
}
"""Columns of samples.parquet: one line for each passage; ``row`` counts run.json's from 0."""


@dataclass(frozen=True)
class Row:
    """One case: barrier times are those of all passages of all processes.

    As in Iwasaki et al. ``min_us`` and ``max_us`` are the least and the greatest of each
    process, averaged over the processes. ``one_way_us`` is o_s + L + o_r, measured
    between pairs of the same hosts, ``predicted_us`` what the formulas make of it.
    ``switches`` is the mean number of switches on a path between two of the hosts.
    ``list_means_us`` are the means of each visiting list (one where there are none).
    ``asked`` counts messages that were asked for because they were late or lost. ``late``: the
    emulator was; ``earlier_attempts`` are rows that were.
    """

    on: str
    algorithm: str
    hosts: int
    fabric: str
    engine: str
    vcs: int
    networks: int
    repeat: int
    barriers: int
    lists: int
    mean_us: float
    p99_us: float
    min_us: float
    max_us: float
    predicted_us: float
    one_way_us: float
    switches: float
    list_means_us: list[float]
    asked: int
    lateness_us_p99: float | None
    late: bool
    valid: bool
    problems: list[str] = field(default_factory=list)
    earlier_attempts: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)
