"""What a paper measured, and how the same is taken from our runs.

The papers' figures are theirs, and stand here with the place where they are printed; ours are
computed from stored runs, never written down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.framework.experiment import EMULATION, SIMULATION
from experiments.reproduction.figures import Row
from runs.spread import Spread

Compute = Callable[[Sequence[Row]], Spread | None]


@dataclass(frozen=True)
class Claim:
    """One figure of a paper: what it is, what it was there, how we have it, and why it differs."""

    paper: str
    place: str
    what: str
    theirs: float
    experiment: str
    compute: Compute
    why: str
    digits: int = 2
    places: tuple[str, ...] = (EMULATION, SIMULATION)
    """Where it can be had at all; elsewhere the page has a dash."""
