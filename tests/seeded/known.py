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


KNOWN: tuple[KnownFailure, ...] = ()
"""Who mends one removes it, and lets all runs have such faults."""
