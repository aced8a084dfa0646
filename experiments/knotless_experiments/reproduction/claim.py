"""A figure of a paper, the computation of ours, and what a paper's page shows.

The papers' figures are in ``experiments/AUTHOR/claims.yaml``, with the place where they are
printed. Ours are always computed from stored runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from knotless.results.spread import Spread
from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.reproduction.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Compute = Callable[[Sequence[Row]], Spread | None]

FITTED = "fitted"
"""A setting of ours was chosen so that this figure comes out: it shows nothing."""
INFERRED = "inferred"
"""The paper does not print this figure: it is derived from others that it prints."""
MISSING = "not stored"


def shown(spread: Spread | None, digits: int) -> str:
    """Format a figure of ours: mean, (minimum to maximum; count)."""
    if spread is None:
        return MISSING
    mean = f"{spread.mean:.{digits}f}"
    if spread.count == 1:
        return mean
    return f"{mean} ({spread.least:.{digits}f} to {spread.most:.{digits}f}; {spread.count})"


@dataclass(frozen=True)
class Expectation:
    """A figure of ours as it was expected before any run from which it is computed.

    ``agrees`` judges our mean, ``words`` are its limits; ``because`` says from what it was
    expected, and ``refuted_by`` what would show that this is wrong.
    """

    agrees: Callable[[float, float], bool]
    words: str
    because: str
    refuted_by: str


@dataclass(frozen=True)
class Claim:
    """A figure of a paper: description, value, computation of ours, and why they differ.

    ``paper`` is its number. ``theirs`` is a number that the paper prints, or its words where it
    prints none.
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
    """The places where ours can be measured; in the other columns the page shows a dash."""
    mark: str = ""
    """:data:`FITTED`, :data:`INFERRED`, or nothing."""
    effect: bool = False
    """The figure is a ratio that is 1 where there is no effect."""
    agrees: Callable[[float, float], bool] | None = None
    """Judges a claim in words by the ends of our interval; without it the claim is not judged."""
    expectation: Expectation | None = None
    """What was expected of our figure; None: it was known when the claim was written."""


@dataclass(frozen=True)
class Plot:
    """A plot in the form of a paper's figure: file name, what it shows, and how it is drawn.

    ``draw(paper, stored)`` uses the paper's printed figures and claims, and stored runs.
    """

    name: str
    caption: str
    draw: Callable[[Paper, Stored], Figure]


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


@dataclass(frozen=True)
class Headline:
    """One line of the first page: a claim by its place and a part of its words.

    ``paper`` is its number. A headline without a place is not attempted.
    """

    paper: str
    words: str
    place: str = ""
    what: str = ""


@dataclass(frozen=True)
class Paper:
    """The claims and tables that are compared with a paper.

    ``number`` is that of its page, ``author`` the name of its folder. ``printed`` are tables of
    the paper, by name, from which several claims and plots take their figures.
    """

    number: str
    author: str
    title: str
    headlines: Sequence[Headline] = ()
    printed: Mapping[str, Any] = field(default_factory=dict)
    sections: Sequence[Section] = ()

    @property
    def claims(self) -> list[Claim]:
        """The claims of all sections, in their order."""
        return [claim for section in self.sections for claim in section.claims]
