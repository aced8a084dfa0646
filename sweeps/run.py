"""Runs what is left to run of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from runs import machine
from sweeps.figures import ERROR, run_point, sample
from sweeps.folder import Folder
from sweeps.settings import settings_of

if TYPE_CHECKING:
    from distributed import Client

Cluster = AbstractContextManager["Client"]


class Watch(Protocol):
    """Who is told how far it is."""

    def begin(self, points: int, left: int) -> None:
        """Learn how many points there are, and how many of them are to be run."""

    def advance(self, row: Mapping[str, Any]) -> None:
        """Learn that one more was run."""


def sweep(folder: Folder, cluster: Cluster, watch: Watch) -> list[dict[str, Any]]:
    """Run the points that were not run yet, or that failed, and return the rows of all points.

    However it ends, ``samples.parquet`` then has what is there.
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
                # The worker has died with it, again and again.
                row, seconds = sample(grid.do, number, grid.points[number]), 0.0
                row[ERROR] = f"{type(error).__name__}: {error}".split("\n")[0]
            folder.keep(row, seconds)
            watch.advance(row)
    finally:
        # A cluster of others is not to go on for us.
        client.cancel(list(futures))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
