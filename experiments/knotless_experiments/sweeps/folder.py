"""The folder of a sweep.

``grid.json`` identifies the grid. ``parts/NUMBER.parquet`` has the row of a point.
``samples.parquet`` has the rows of all points in order; its bytes do not depend on which processes
ran them. ``timings.csv`` has the run time of each point, ``run.json`` the machine. Files in
``parts`` are always complete, and their points are not run again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from knotless.base.errors import SweepError
from knotless.base.files import append, folder_for_files, open_to_lock, write_open, write_whole
from knotless.results import tables
from knotless_experiments.sweeps.figures import ERROR, INDEX, columns
from knotless_experiments.sweeps.grid import Grid

VERSION = 1
_PART = "{:06d}.parquet"


class Folder:
    """The folder of one sweep, locked by this process; a context manager."""

    def __init__(self, path: Path, grid: Grid) -> None:
        """Open or create the folder.

        Raises
        ------
        SweepError
            It holds another grid or something else, another process uses it, or it cannot be
            created.

        """
        self.path = path
        self.grid = grid
        with folder_for_files(path / "parts", SweepError):
            self._lock = open_to_lock(path / "grid.json", SweepError)
            try:
                self._claim()
            except BaseException:
                if os.fstat(self._lock).st_size == 0:  # it was made here
                    (path / "grid.json").unlink(missing_ok=True)
                os.close(self._lock)
                raise

    def _claim(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SweepError(f"{self.path}: another sweep is using this folder") from None
        mine = {
            "version": VERSION,
            "do": self.grid.do,
            "points": len(self.grid.points),
            "varying": list(self.grid.varying),
            "sha256": self.grid.sha256,
        }
        held = os.pread(self._lock, 1 << 20, 0)
        if held:
            try:
                stored = json.loads(held)
            except ValueError:
                stored = None
            if stored != mine:
                raise SweepError(
                    f"{self.path}: holds the sweep of another grid; name another folder with --out"
                )
        else:
            # Not replaced by another file: the lock is on this one.
            text = json.dumps(mine, indent=1) + "\n"
            write_open(self._lock, self.path / "grid.json", text, SweepError)

    def __enter__(self) -> Folder:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the folder."""
        os.close(self._lock)

    def done(self) -> set[int]:
        """Return the numbers of the points that ran without an error."""
        return {row[INDEX] for row in self.rows() if row[ERROR] is None}

    def keep(self, row: Mapping[str, Any], seconds: float) -> None:
        """Keep the row of a point, on disk when this returns."""
        part = self.path / "parts" / _PART.format(row[INDEX])
        write_whole(part, self._parquet([row]), SweepError)
        timings = self.path / "timings.csv"
        head = "" if timings.exists() else "index,seconds\n"
        append(timings, f"{head}{row[INDEX]},{seconds:.6f}\n", SweepError)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all parts, in order of the points. Raises SweepError."""
        rows: list[dict[str, Any]] = []
        for path in sorted((self.path / "parts").glob("[0-9]*.parquet")):
            rows += tables.read(path, SweepError, columns(self.grid.do))
        return rows

    def gather(self) -> list[dict[str, Any]]:
        """Write ``samples.parquet`` from all parts, and return its rows."""
        rows = self.rows()
        write_whole(self.path / "samples.parquet", self._parquet(rows), SweepError)
        return rows

    def describe(self, run: Mapping[str, Any]) -> None:
        """Write ``run.json``: options, times and machine."""
        text = json.dumps(run, indent=2, allow_nan=False) + "\n"
        write_whole(self.path / "run.json", text, SweepError)

    def _parquet(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        return tables.to_parquet(rows, columns(self.grid.do))
