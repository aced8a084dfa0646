"""A figure of a paper, and how ours is computed.

The papers' figures are stored here, with the place where they are printed; ours are always computed
from stored runs.
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
    """The places where it can be measured; elsewhere the page shows a dash."""
