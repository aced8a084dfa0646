"""The runs that the page is made from: ``docs/runs/EXPERIMENT-ON-ID.json``, run.json each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import KnotlessError
from runs import results

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "runs"
_LEFT_OUT = ("earlier_attempts",)
"""Row keys that the page has no use for, and that would make the stored files large."""

Row = Mapping[str, Any]


class StoredError(KnotlessError):
    """A run that cannot be stored or read."""


@dataclass(frozen=True)
class Stored:
    """All stored runs."""

    runs: Sequence[Mapping[str, Any]]

    def rows(self, experiment: str, on: str) -> list[Row]:
        """Return the valid rows of an experiment made on a place."""
        return [
            row
            for run in self.runs
            if run["experiment"] == experiment
            for row in run["rows"]
            if row["valid"] and row.get("on", "emulation") == on
        ]

    def counts(self) -> tuple[int, int]:
        """Return how many rows there are, and how many of them are not valid."""
        rows = [row for run in self.runs for row in run["rows"]]
        return len(rows), sum(not row["valid"] for row in rows)


def keep(directory: Path, folder: Path = FOLDER) -> Path:
    """Store a run; returns the file. Raises ResultsError, or StoredError for an incomplete run."""
    run, _ = results.read(directory)
    if run["status"] != "complete":
        raise StoredError(f"{directory}: the run is {run['status']}: only complete ones are stored")
    rows = [{k: v for k, v in row.items() if k not in _LEFT_OUT} for row in run["rows"]]
    on = run["parameters"].get("on", "emulation")
    path = folder / f"{run['experiment']}-{on}-{run['id']}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**run, "pid": None, "rows": rows}, separators=(",", ":"))
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise StoredError(f"{path}: {error.strerror}") from error
    return path


def read(folder: Path = FOLDER) -> Stored:
    """Read all stored runs, by name. Raises StoredError where there are none."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            run = json.loads(path.read_text(encoding="utf-8"))
            _ = run["experiment"], run["id"]
            run["rows"] = results.updated(run["rows"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise StoredError(f"{path}: not a stored run: {error}") from error
        found.append(run)
    if not found:
        raise StoredError(f"{folder}: no run is stored; name folders of results to store them")
    return Stored(found)
