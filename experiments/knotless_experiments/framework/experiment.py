"""The interface of experiments, and their registry.

An experiment is a folder of ``knotless_experiments.studies``. Hyphens in its name are underscores
in the folder's. Its files:

- ``__init__.py`` defines ``EXPERIMENT``, with its options, and checks them
- ``columns.py`` declares the columns of its rows and samples, ``COLUMNS``
- ``presentation.py`` has :func:`present`, which makes a :class:`Presentation` of a run
- further files list its cases and measure them
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import click

from knotless.base.errors import KnotlessError
from knotless.base.plugins import module_names
from knotless_experiments.framework.columns import Columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure


EMULATION = "emulation"
SIMULATION = "simulation"
ANALYSIS = "analysis"
"""Places to run on; an analysis considers paths only, without time."""


class ExperimentError(KnotlessError):
    """An experiment that does not exist, or an invalid setting."""


@dataclass(frozen=True)
class Common:
    """The settings of all experiments; None means the experiment's default.

    ``on`` is one of the experiment's ``places``.
    """

    on: str = EMULATION
    quick: bool = False
    repeats: int = 1
    seed: int = 1
    duration_s: float | None = None
    rate_mbps: float | None = None


class Progress(Protocol):
    """Receives the progress of an experiment."""

    def begin(self, what: str) -> None:
        """Report the current activity."""

    def advance(self) -> None:
        """Report that a step of the campaign is finished."""


Record = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], None]
"""Called with each finished row and its samples."""


class Campaign(Protocol):
    """An experiment with checked settings, before anything is started."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All settings that determine the run, for ``run.json``."""

    @property
    def steps(self) -> int:
        """The number of calls of ``progress.advance`` in ``run``."""

    def run(self, record: Record, progress: Progress) -> None:
        """Start fabrics, measure, and remove them."""


@dataclass(frozen=True)
class Plot:
    """A figure of the report: its file name without suffix, and its caption.

    Figures that take ``half`` of the width stand beside each other where there is room.
    """

    name: str
    caption: str
    figure: Figure
    half: bool = False


@dataclass(frozen=True)
class Presentation:
    """The presentation of a run in ``report.html`` and in the terminal.

    The table has a line for each of ``rows``, by ``columns``. ``answer`` is the main result in a
    few words, and how they go on; without one the terminal says how many runs are valid.
    """

    title: str
    lead: str
    sentences: Sequence[str]
    columns: Columns
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[tuple[str, str]] = ()
    plots: Sequence[Plot] = field(default=())
    answer: tuple[str, str] | None = None


THE_SIMULATOR = (
    "The simulator",
    "The switch model of the emulator under a virtual clock: no Open vSwitch, no kernel, and no "
    "programs on hosts.",
)
"""The note on how simulated runs are measured."""


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    ``places`` are where it can run, the default first; rows of :data:`EMULATION` need root.
    ``options`` are its own command-line options. ``prepare`` receives their values by name and
    raises KnotlessError for invalid ones, before anything is started. ``columns`` are those of
    its rows and samples.
    """

    name: str
    summary: str
    example: str
    options: tuple[click.Option, ...]
    columns: Columns
    prepare: Callable[[Common, Mapping[str, Any]], Campaign]
    places: tuple[str, ...] = (EMULATION,)

    def present(
        self, run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
    ) -> Presentation:
        """Return the presentation of a run as :func:`knotless.results.results.read` returns it.

        With ``draw`` it has plots. Its module is imported on first use, because drawing needs
        Matplotlib, which takes a second to import. Simulated runs have :data:`THE_SIMULATOR`.
        """
        shown = _module(self.name, "presentation").present(run, samples, draw)
        assert isinstance(shown, Presentation)  # noqa: S101 - not a mistake of the user
        if run["parameters"].get("on") == SIMULATION:
            return replace(shown, notes=[*shown.notes, THE_SIMULATOR])
        return shown


def names() -> list[str]:
    """Return the experiments' names, in alphabetical order."""
    return sorted(name.replace("_", "-") for name in module_names("knotless_experiments.studies"))


def load(name: str) -> Experiment:
    """Return the experiment called ``name``; raises ExperimentError if there is none."""
    if name not in names():
        raise ExperimentError(f"experiment {name!r}: there is {', '.join(names())}")
    experiment = _module(name).EXPERIMENT
    assert isinstance(experiment, Experiment)  # noqa: S101 - not a mistake of the user
    return experiment


def _module(name: str, *parts: str) -> ModuleType:
    folder = f"knotless_experiments.studies.{name.replace('-', '_')}"
    return importlib.import_module(".".join((folder, *parts)))
