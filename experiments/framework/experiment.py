"""What an experiment is to the command line, and the list of those there are.

An experiment is a folder of this package whose ``__init__.py`` has one ``EXPERIMENT``; hyphens
of its name are underscores of the folder's. The modules beside the folders (results, report,
plots, theory, iperf) and the folders of :data:`_SHARED` are what they share.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import click

from common.errors import KnotlessError
from common.plugins import module_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure


EMULATION = "emulation"
SIMULATION = "simulation"
ANALYSIS = "analysis"
"""Places to run on; an analysis looks at paths alone, and no time passes."""


class ExperimentError(KnotlessError):
    """An experiment that does not exist, or a setting of one that makes no sense."""


@dataclass(frozen=True)
class Common:
    """The settings every experiment has; None leaves the choice to the experiment.

    ``on`` is one of the experiment's ``places``.
    """

    on: str = EMULATION
    quick: bool = False
    repeats: int = 1
    seed: int = 1
    duration_s: float | None = None
    rate_mbps: float | None = None


class Progress(Protocol):
    """Where an experiment says how far it is."""

    def begin(self, what: str) -> None:
        """Say what is being done now."""

    def advance(self) -> None:
        """Say that one of the campaign's steps is done."""


Record = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], None]
"""Called with each finished row and its samples."""


class Campaign(Protocol):
    """An experiment with its settings, checked, with nothing built yet."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Everything that decides what is run, for ``run.json``."""

    @property
    def steps(self) -> int:
        """How often ``run`` will call ``progress.advance``."""

    def run(self, record: Record, progress: Progress) -> None:
        """Build, measure, take down."""


@dataclass(frozen=True)
class Plot:
    """A figure for the report: its file name without suffix, and what a reader sees in it."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Presentation:
    """How a run is shown: in ``report.html``, and its ``brief`` columns on the terminal."""

    title: str
    lead: str
    sentences: Sequence[str]
    columns: Sequence[str]
    brief: Sequence[str]
    table: Sequence[Sequence[str]]
    notes: Sequence[tuple[str, str]] = ()
    plots: Sequence[Plot] = field(default=())


Present = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]], bool], Presentation]


def shown_by(module: str) -> Present:
    """Return the ``present`` of a module, which is loaded when it is first needed.

    What draws needs Matplotlib, which takes a second to load.
    """

    def present(
        run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
    ) -> Presentation:
        shown = importlib.import_module(module).present(run, samples, draw)
        assert isinstance(shown, Presentation)  # noqa: S101 - a slip of ours, not of the user
        return shown

    return present


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    ``places`` are what it can run on, the usual one first; rows made in :data:`EMULATION`
    need root. ``options`` are its own options on the command line; ``prepare`` gets their values by
    name and raises KnotlessError for those that make no sense, before anything is built.
    ``identity`` are the keys of a row that say what case it is, ``measures`` its figures: by
    these runs are compared. ``present`` gets what :func:`runs.results.read` returns, and
    whether to draw.
    """

    name: str
    summary: str
    example: str
    options: tuple[click.Option, ...]
    sample_types: Mapping[str, str]
    prepare: Callable[[Common, Mapping[str, Any]], Campaign]
    present: Present
    places: tuple[str, ...] = (EMULATION,)
    identity: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()


def names() -> list[str]:
    """Return the experiments' names, in alphabetical order."""
    return sorted(name.replace("_", "-") for name in module_names("experiments.studies"))


def load(name: str) -> Experiment:
    """Return the experiment of that name; raises ExperimentError when there is none."""
    if name not in names():
        raise ExperimentError(f"experiment {name!r}: there is {', '.join(names())}")
    found = importlib.import_module(f"experiments.studies.{name.replace('-', '_')}").EXPERIMENT
    assert isinstance(found, Experiment)  # noqa: S101 - a slip of ours, not of the user
    return found
