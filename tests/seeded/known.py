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


_FABRIC = (
    "cut,flap,silent,disconnect,lose-at-switch,lose-at-controller,stall,restart,restart-with-rules"
)
_OTHERS = "rules-deleted,rules-changed,rules-added,full-table,duplicate-dpid"
_CONTROLLERS = "kill,kill-at-message,kill-at-write,hang,mute,part,drain,undrain,engine"
FIRST_KINDS = f"{_FABRIC},{_CONTROLLERS}"
"""The kinds of faults that were drawn when the first kept runs were found."""
LATER_KINDS = f"{_FABRIC},{_OTHERS},{_CONTROLLERS}"
"""And later. Of more kinds, a seed would draw other faults."""
KNOWN: tuple[KnownFailure, ...] = ()
"""Who mends one removes it, and lets all runs have such faults."""
