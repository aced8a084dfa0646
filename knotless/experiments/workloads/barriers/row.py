"""The row of one case of the barrier experiment."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

SAMPLE_TYPES = {
    "row": "int32",
    "barrier": "int32",
    "process": "int32",
    "duration_us": "double",
}
"""Columns of samples.parquet: one sample per passage; ``row`` counts run.json's from 0."""


@dataclass(frozen=True)
class Row:
    """The results of one case; barrier times are over all passages of all processes.

    As in Iwasaki et al., ``min_us`` and ``max_us`` are the minimum and maximum of each
    process, averaged over the processes. ``one_way_us`` is o_s + L + o_r, measured
    between pairs of the same hosts, ``predicted_us`` the result of the formulas.
    ``switches`` is the mean number of switches on a path between two of the hosts.
    ``list_means_us`` are the means of each visiting list (one where there are none).
    ``asked`` counts retransmissions of late or lost messages. ``stretch``
    is real over virtual time.
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
    stretch: float | None
    valid: bool
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it as a value for :func:`json.dumps`."""
        return asdict(self)
