"""Running the remaining points of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from knotless.results import machine
from knotless_experiments.sweeps.figures import ERROR, run_point, sample
from knotless_experiments.sweeps.folder import Folder
from knotless_experiments.sweeps.settings import settings_of

if TYPE_CHECKING:
    from distributed import Client

Cluster = AbstractContextManager["Client"]


class Watch(Protocol):
    """Receives the progress of a sweep."""

    def begin(self, points: int, left: int) -> None:
        """Report the number of points, and how many of them will run."""

    def advance(self, row: Mapping[str, Any]) -> None:
        """Report the row of a finished point."""


def sweep(folder: Folder, cluster: Cluster, watch: Watch) -> list[dict[str, Any]]:
    """Run the points that have not run yet or failed; return the rows of all points.

    However it ends, ``samples.parquet`` then has all rows so far.
    """
    grid = folder.grid
    done = folder.done()
    left = [number for number in range(len(grid.points)) if number not in done]
    watch.begin(len(grid.points), len(left))
    run = {
        "do": grid.do,
        "started": _now(),
        "finished": None,
        "status": "running",
        "done_before": len(done),
        "versions": machine.versions(),
        "machine": machine.machine(),
    }
    folder.describe(run)
    try:
        if left:
            with cluster as client:
                _run(folder, client, left, watch)
        run["status"] = "complete"
    except BaseException:
        run["status"] = "incomplete"
        raise
    finally:
        rows = folder.gather()
        run |= {"finished": _now(), "points": len(rows)}
        run["failed"] = sum(row[ERROR] is not None for row in rows)
        folder.describe(run)
    return rows


def _run(folder: Folder, client: Client, left: list[int], watch: Watch) -> None:
    from distributed import as_completed

    grid = folder.grid
    futures = {
        client.submit(
            run_point, grid.do, number, settings_of(grid.do, grid.points[number]), pure=False
        ): number
        for number in left
    }
    try:
        for future in as_completed(list(futures)):
            number = futures.pop(future)
            error = future.exception()
            if error is None:
                row, seconds = future.result()
            else:
                # Workers died repeatedly while running this point.
                row, seconds = sample(grid.do, number, grid.points[number]), 0.0
                row[ERROR] = f"{type(error).__name__}: {error}".split("\n")[0]
            folder.keep(row, seconds)
            watch.advance(row)
    finally:
        # Cancel what remains on a shared cluster.
        client.cancel(list(futures))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
