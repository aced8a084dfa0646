"""A figure of a paper, and the computation of ours.

The papers' figures are stored in this folder, with the place where they are printed. Ours are
always computed from stored runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from knotless.experiments.framework.experiment import EMULATION, SIMULATION
from knotless.experiments.reproduction.rows import Row
from knotless.results.spread import Spread
from knotless.results.stored import Stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Compute = Callable[[Sequence[Row]], Spread | None]

FITTED = "fitted"
"""A setting of ours was chosen so that this figure comes out: it shows nothing."""
INFERRED = "inferred"
"""The paper does not print this figure: it is derived from others that it prints."""


@dataclass(frozen=True)
class Claim:
    """A figure of a paper: description, value, computation of ours, and why they differ.

    ``theirs`` is a number that the paper prints, or its words where it prints none.
    """

    paper: str
    place: str
    what: str
    theirs: float | str
    experiment: str
    compute: Compute
    why: str = ""
    digits: int = 2
    places: tuple[str, ...] = (EMULATION, SIMULATION)
    """Where ours can be measured; in the other columns the page shows a dash."""
    mark: str = ""
    """:data:`FITTED`, :data:`INFERRED`, or nothing."""


@dataclass(frozen=True)
class Plot:
    """A plot in the form of a paper's figure: file name, what it shows, and how it is drawn."""

    name: str
    caption: str
    draw: Callable[[Stored], Figure]


@dataclass(frozen=True)
class Section:
    """The figures and tables of a paper that belong together.

    ``commands`` repeat the measurement; ``notes`` are paragraphs; ``missing`` says what of the
    paper is not compared, and why.
    """

    title: str
    claims: Sequence[Claim] = ()
    plots: Sequence[Plot] = ()
    commands: Sequence[str] = ()
    notes: Sequence[str] = ()
    missing: Sequence[str] = ()
