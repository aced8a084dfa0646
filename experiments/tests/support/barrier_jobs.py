"""Jobs of ``knotless-barrier`` for a barrier; see job.rs in core/messages/programs/src/bin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PORT = 9


def barrier_jobs(
    networks: Sequence[Sequence[Mapping[str, Any]]],
    rounds: Sequence[Mapping[str, Any]],
    *,
    retry_us: int,
    patience_us: int,
    faults: Mapping[str, float] | None = None,
) -> list[dict[str, Any]]:
    """Return the job of each process, on ``networks[rank]``; barriers follow without a pause."""
    work = {"rounds": rounds, "computing_us": 0, "retry_us": retry_us, "patience_us": patience_us}
    jobs: list[dict[str, Any]] = [
        {"rank": rank, "port": PORT, "networks": own, "work": {"barrier": work}}
        for rank, own in enumerate(networks)
    ]
    return jobs if faults is None else [{**job, "faults": faults} for job in jobs]


def rounds_of(algorithms: Sequence[str], barriers: int) -> list[dict[str, Any]]:
    """Return this many barriers by each algorithm, in sequence."""
    return [{"algorithm": name, "order": None, "barriers": barriers} for name in algorithms]
