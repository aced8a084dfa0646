"""The folder of a run, ``results/EXPERIMENT-TIME-ID/``, updated after each row.

``run.json`` and ``samples.parquet`` are replaced atomically after each row, so that the results
so far can be read however the run ends; ``status`` records how it ended.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.base.files import folder_for_files, write_all
from knotless.results import document, machine, tables

DEFAULT_FOLDER = Path("results")
SAMPLES = "samples.parquet"
Sample = Mapping[str, str | int | float | bool | None]


class ResultsError(KnotlessError):
    """A results folder that cannot be created or read."""


def _now() -> datetime:
    return datetime.now(UTC)


class Results:
    """The folder of one run; a context manager that records how the run ended.

    ``status`` in ``run.json`` is ``running`` until the end, then ``complete``, or
    ``incomplete`` with a ``reason``. A run whose process was killed stays ``running`` with
    its ``pid``; :func:`read` calls it incomplete.
    """

    def __init__(
        self,
        experiment: str,
        parameters: Mapping[str, Any],
        seed: int,
        sample_types: Mapping[str, str],
        folder: Path = DEFAULT_FOLDER,
    ) -> None:
        """Create the folder; ``sample_types`` gives the pyarrow type name of each sample column.

        Raises ResultsError when the folder cannot be made or written to.
        """
        started = _now()
        self.run_id = f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
        self.directory = folder / f"{experiment}-{self.run_id}"
        self.samples: list[Sample] = []
        self.rows: list[dict[str, Any]] = []
        self._sample_types = dict(sample_types)
        self.run: dict[str, Any] = {
            "experiment": experiment,
            "id": self.run_id,
            "status": "running",
            "reason": None,
            "pid": os.getpid(),
            "started": started.isoformat(timespec="seconds"),
            "finished": None,
            "seed": seed,
            "parameters": dict(parameters),
            "versions": machine.versions(),
            "machine": machine.machine(),
            "rows": self.rows,
        }
        try:
            with folder_for_files(self.directory, ResultsError):
                self.write()
        except ResultsError as error:
            raise ResultsError(f"{error}; name a folder with --out") from error

    def add(self, row: Mapping[str, Any], samples: Sequence[Sample]) -> None:
        """Append a row and its samples; they are on disk when this returns."""
        self.rows.append(dict(row))
        self.samples.extend(samples)
        self.write()

    def write(self) -> None:
        """Replace ``run.json`` and ``samples.parquet``; raises ResultsError."""
        text = json.dumps(self.run, indent=2, allow_nan=False) + "\n"
        samples = tables.to_parquet(self.samples, self._sample_types)
        folder = self.directory
        write_all({folder / SAMPLES: samples, folder / document.NAME: text}, ResultsError)

    def __enter__(self) -> Results:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Mark the run as complete, or as incomplete with the reason; errors propagate."""
        self.run["status"] = "complete" if error is None else "incomplete"
        if isinstance(error, KeyboardInterrupt):
            self.run["reason"] = "interrupted"
        elif error is not None:
            self.run["reason"] = f"{type(error).__name__}: {error}"
        self.run["finished"] = _now().isoformat(timespec="seconds")
        self.write()


def read(directory: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read a run's folder: the content of ``run.json``, and the samples.

    Raises ResultsError if it is not such a folder. A run that is ``running`` but whose process
    no longer exists is returned as ``incomplete``.
    """
    run = document.read(directory / document.NAME, ResultsError)
    samples = tables.read(directory / SAMPLES, ResultsError)
    if run["status"] == "running" and not _is_alive(run["pid"]):
        run["status"], run["reason"] = "incomplete", "its process is gone"
    return run, samples


def _is_alive(pid: int | None) -> bool:
    return pid is not None and Path(f"/proc/{pid}").exists()
