"""A figure of a paper, and the computation of ours.

The papers' figures are stored in this folder, with the place where they are printed. Ours are
always computed from stored runs.
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
    """A figure of a paper: description, value, computation of ours, and why they differ."""

    paper: str
    place: str
    what: str
    theirs: float
    experiment: str
    compute: Compute
    why: str
    digits: int = 2
    places: tuple[str, ...] = (EMULATION, SIMULATION)
    """Where ours can be measured; in the other columns the page shows a dash."""
