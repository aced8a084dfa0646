"""Runs that are known to fail, each kept as a strict expected failure until it is mended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownFailure:
    """A run that fails with one kind of violation, and what is missing.

    ``options`` are those of ``python -m tests.seeded``.
    """

    options: str
    kind: str
    reason: str


KNOWN: tuple[KnownFailure, ...] = (
    KnownFailure(
        "--seed 404 --options 'flow_control: pfc'",
        "unsettled",
        "under PFC only an emulator tells that what a link has lost uncounted is not on it",
    ),
)
"""Who mends one removes it, and lets all runs have such faults."""
