"""A sweep's folder: what was asked for, a part for each point that was run, and all together.

``grid.json`` says which grid it is of; ``parts/NUMBER.parquet`` has one row; ``samples.parquet``
has those of all points in their order, and the same bytes whoever ran them; ``timings.csv`` says
how long each took, and ``run.json`` on what machine. Whatever ends the sweep, what
is in ``parts`` is whole and will not be run again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runs.results import write_whole
from sweeps.errors import SweepError
from sweeps.figures import ERROR, INDEX, columns
from sweeps.grid import Grid

VERSION = 1
_PART = "{:06d}.parquet"


class Folder:
    """The folder of one sweep, held by this process alone; a context manager."""

    def __init__(self, path: Path, grid: Grid) -> None:
        """Open or make the folder.

        Raises
        ------
        SweepError
            It holds the sweep of another grid or something else, another process works in it,
            or it cannot be made.

        """
        self.path = path
        self.grid = grid
        try:
            (path / "parts").mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / "grid.json", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise SweepError(f"{path}: cannot be written: {error.strerror}") from error
        try:
            self._claim()
        except BaseException:
            os.close(self._lock)
            raise

    def _claim(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SweepError(f"{self.path}: another sweep is at work there") from None
        mine = {
            "version": VERSION,
            "do": self.grid.do,
            "points": len(self.grid.points),
            "varying": list(self.grid.varying),
            "sha256": self.grid.sha256,
        }
        text = os.pread(self._lock, 1 << 20, 0)
        if text:
            try:
                known = json.loads(text)
            except ValueError:
                known = None
            if known != mine:
                raise SweepError(
                    f"{self.path}: holds the sweep of another grid; name another folder with --out"
                )
        else:
            # Not replaced by another file: the lock is on this one.
            os.pwrite(self._lock, (json.dumps(mine, indent=1) + "\n").encode(), 0)

    def __enter__(self) -> Folder:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of it."""
        os.close(self._lock)

    def done(self) -> set[int]:
        """Return the numbers of the points that were run without an error."""
        return {row[INDEX] for row in self.rows() if row[ERROR] is None}

    def keep(self, row: Mapping[str, Any], seconds: float) -> None:
        """Keep the row of a point, on disk when this returns."""
        write_whole(self.path / "parts" / _PART.format(row[INDEX]), self._parquet([row]))
        timings = self.path / "timings.csv"
        head = "" if timings.exists() else "index,seconds\n"
        with timings.open("a", encoding="ascii") as file:
            file.write(f"{head}{row[INDEX]},{seconds:.6f}\n")

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all parts, in order of the points. Raises SweepError."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]] = []
        for path in sorted((self.path / "parts").glob("[0-9]*.parquet")):
            try:
                rows += pq.read_table(path, schema=self._schema()).to_pylist()
            except (OSError, pa.ArrowException) as error:
                raise SweepError(f"{path}: cannot be read; remove it: {error}") from error
        return rows

    def gather(self) -> list[dict[str, Any]]:
        """Write ``samples.parquet`` from all parts, and return its rows."""
        rows = self.rows()
        write_whole(self.path / "samples.parquet", self._parquet(rows))
        return rows

    def describe(self, run: Mapping[str, Any]) -> None:
        """Write ``run.json``: how, when and on what it was run."""
        text = json.dumps(run, indent=2, allow_nan=False) + "\n"
        write_whole(self.path / "run.json", text.encode())

    def _schema(self) -> Any:
        import pyarrow as pa

        kinds = columns(self.grid.do).items()
        return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in kinds])

    def _parquet(self, rows: list[Mapping[str, Any]] | list[dict[str, Any]]) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(list(rows), schema=self._schema()), sink)
        return bytes(sink.getvalue().to_pybytes())
