"""The runs from which pages are made: ``experiments/PAPER/runs/EXPERIMENT-ON-ID.json``.

Each file is a ``run.json``. A paper's folder has the name of its first author; ``own`` has runs of
experiments that no paper did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.base.files import folder_for_files, write_whole
from knotless.base.package import data
from knotless.results import document, results

FOLDER = data("experiments")
OWN = "own"

Row = Mapping[str, Any]


class StoredError(KnotlessError):
    """A run that cannot be stored or read."""


@dataclass(frozen=True, eq=False)
class Stored:
    """All stored runs; compared by identity, so that what is computed from them can be cached."""

    runs: Sequence[Mapping[str, Any]]

    def rows(self, experiment: str, on: str) -> list[Row]:
        """Return the valid rows of an experiment; ``on``: emulation, simulation or analysis."""
        return [
            row
            for run in self.runs
            if run["experiment"] == experiment
            for row in run["rows"]
            if row["valid"] and row.get("on", "emulation") == on
        ]

    def counts(self) -> tuple[int, int]:
        """Return the number of rows, and the number of invalid ones."""
        rows = [row for run in self.runs for row in run["rows"]]
        return len(rows), sum(not row["valid"] for row in rows)


def keep(directory: Path, folder: Path = FOLDER) -> Path:
    """Store a run; returns the file. Raises ResultsError, or StoredError for an incomplete run."""
    run, _ = results.read(directory)
    if run["status"] != "complete":
        raise StoredError(f"{directory}: the run is {run['status']}: only complete ones are stored")
    on = run["parameters"].get("on", "emulation")
    others = sorted(folder.glob(f"*/runs/{run['experiment']}-*.json"))
    runs = others[0].parent if others else folder / OWN / "runs" if folder == FOLDER else folder
    path = runs / f"{run['experiment']}-{on}-{run['id']}.json"
    text = json.dumps({**run, "pid": None}, separators=(",", ":"))
    with folder_for_files(runs, StoredError):
        write_whole(path, text + "\n", StoredError)
    return path


def files(folder: Path = FOLDER) -> list[Path]:
    """Return the files of all stored runs, by name: those of a folder, and of papers in it."""
    return sorted(
        (*folder.glob("*.json"), *folder.glob("*/runs/*.json")), key=lambda path: path.name
    )


def read(folder: Path = FOLDER) -> Stored:
    """Read all stored runs, by name. Raises StoredError where there are none."""
    runs = [document.read(path, StoredError) for path in files(folder)]
    if not runs:
        raise StoredError(f"{folder}: there are no stored runs; give folders of results to store")
    return Stored(runs)
