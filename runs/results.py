"""One run's folder, ``results/EXPERIMENT-TIME-ID/``, written as results come.

After each row ``run.json`` and ``samples.parquet`` are replaced whole, so that whatever
ends the run, what was measured until then can be read, and ``status`` tells how it ended.
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

from common.errors import KnotlessError
from common.flow_control import normalised
from runs import machine

DEFAULT_FOLDER = Path("results")
Sample = Mapping[str, str | int | float | bool | None]


class ResultsError(KnotlessError):
    """A results folder that cannot be made or read."""


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)


def _now() -> datetime:
    return datetime.now(UTC)


class Results:
    """The folder of one run; a context manager that marks how the run ended.

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
        """Make the folder; ``sample_types`` gives each sample column's pyarrow type name.

        Raises ResultsError when the folder cannot be made.
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
            self.directory.mkdir(parents=True)
            self.write()
        except OSError as error:
            raise ResultsError(
                f"results: cannot write to {folder}: {error.strerror}; name a folder with --out"
            ) from error

    def add(self, row: Mapping[str, Any], samples: Sequence[Sample]) -> None:
        """Keep one row and its samples, on disk when this returns."""
        self.rows.append(dict(row))
        self.samples.extend(samples)
        self.write()

    def write(self) -> None:
        """Replace ``run.json`` and ``samples.parquet``."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema(
            [(name, pa.type_for_alias(kind)) for name, kind in self._sample_types.items()]
        )
        table = pa.Table.from_pylist([dict(sample) for sample in self.samples], schema=schema)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        write_whole(self.directory / "samples.parquet", sink.getvalue().to_pybytes())
        text = json.dumps(self.run, indent=2, allow_nan=False) + "\n"
        write_whole(self.directory / "run.json", text.encode())

    def __enter__(self) -> Results:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Mark the run complete, or incomplete and why; the error goes on its way."""
        self.run["status"] = "complete" if error is None else "incomplete"
        if isinstance(error, KeyboardInterrupt):
            self.run["reason"] = "interrupted"
        elif error is not None:
            self.run["reason"] = f"{type(error).__name__}: {error}"
        self.run["finished"] = _now().isoformat(timespec="seconds")
        self.write()


def updated(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return stored rows or samples with today's names of flow controls."""
    return [
        {key: normalised(value) if key == "flow_control" else value for key, value in row.items()}
        for row in rows
    ]


def read(directory: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read a run's folder back: the contents of ``run.json``, and the samples.

    Raises ResultsError when it is no such folder. A run left ``running`` by a process that
    is gone is returned as ``incomplete``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        run = json.loads((directory / "run.json").read_text(encoding="utf-8"))
        samples = pq.read_table(directory / "samples.parquet").to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ResultsError(f"{directory}: not a folder of results: {error}") from error
    if not isinstance(run, dict) or "rows" not in run:
        raise ResultsError(f"{directory}/run.json: has no rows: not a run of an experiment")
    if run.get("status") == "running" and not Path(f"/proc/{run.get('pid')}").exists():
        run["status"], run["reason"] = "incomplete", "its process is gone"
    run["rows"] = updated(run["rows"])
    return run, updated(samples)
