"""``knotless sweep``: a grid of simulations or analyses, on many processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from knotless.base.counting import counted
from knotless.cli.answer import Answer, Headline, Hint, Tone, print_answer, written
from knotless.cli.numbers import Whole
from knotless.cli.options import json_option, print_json
from knotless.cli.output import say
from knotless.cli.progress import Bar, terminated_as_interrupted
from knotless.results.plots import check_format
from knotless_experiments.sweeps import cluster, grid
from knotless_experiments.sweeps.figures import ERROR
from knotless_experiments.sweeps.folder import Folder
from knotless_experiments.sweeps.run import sweep

MOST_WORKERS = 1024
_SHOWN_ERRORS = 5


class PointBar(Bar):
    """Prints the number of points, then shows the progress."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def begin(self, points: int, left: int) -> None:
        """Print the number of points, and how many of them will run."""
        before = f", {points - left} of them done before" if left < points else ""
        say(f"{points} points{before}; {left} to run {self._where}", err=True)
        self.update(total=left, description="sweeping")

    def advance(self, row: Mapping[str, Any]) -> None:
        """Count a finished point."""
        words = (str(row[key]) for key in ("fabric", "engine", "pattern"))
        self.update(advance=1, description=" ".join(words))


@click.command(name="sweep")
@click.argument("file", metavar="FILE.yaml")
@click.option("--out", metavar="DIR", help="The sweep's folder [default: results/sweep-FILE].")
@click.option(
    "--workers",
    type=Whole(1, MOST_WORKERS),
    help="Processes on this machine [default: one per core].",
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler instead."
)
@click.option("--plot", metavar="F.svg", help="Plot a figure over a setting (SVG, PNG, PDF).")
@json_option
def command(
    file: str,
    out: str | None,
    workers: int | None,
    scheduler: str | None,
    plot: str | None,
    as_json: bool,
) -> int:
    """Run every combination of the settings that FILE.yaml gives; see docs/sweeps.md.

    Results are in DIR/samples.parquet. After an interruption, the same command continues; failed
    points are run again. The exit status is 1 if some points failed.

    Example: knotless sweep experiments/sweeps/torus-load.yaml --plot torus-load.svg
    """
    if workers is not None and scheduler is not None:
        raise click.UsageError("--workers is for this machine; omit it or --scheduler")
    if plot is not None:
        check_format(plot)
    asked = grid.read(Path(file))
    path = Path("results") / f"sweep-{Path(file).stem}" if out is None else Path(out)
    if scheduler is None:
        count = min(workers or cluster.usual_workers(), len(asked.points))
        where, processes = f"on {count} processes", cluster.local(count)
    else:
        where, processes = f"on {scheduler}", cluster.remote(scheduler)
    with terminated_as_interrupted(), Folder(path, asked) as folder, PointBar(where) as bar:
        rows = sweep(folder, processes, bar)
    if plot is not None:
        from knotless_experiments.sweeps.plot import draw  # Matplotlib takes a second to load

        draw(asked, rows, Path(plot))
    failed = [row for row in rows if row[ERROR] is not None]
    for row in failed[:_SHOWN_ERRORS]:
        say(f"point {row['index']} failed: {row[ERROR]}", err=True)
    if len(failed) > _SHOWN_ERRORS:
        say(f"and {len(failed) - _SHOWN_ERRORS} more; see the column error", err=True)
    if as_json:
        counts = {"points": len(rows), "failed": len(failed)}
        print_json({"folder": str(path), **counts, "rows": rows})
    else:
        print_answer(_answer(file, path, len(rows), len(failed), plot))
    return 1 if failed else 0


def _answer(file: str, path: Path, points: int, failed: int, plot: str | None) -> Answer:
    """Return how many points are done, and where their values and figure are."""
    tone = Tone.BAD if failed else Tone.GOOD
    rest = f", {failed:,} failed: the same command tries them again" if failed else ", all done"
    drawing = ["knotless", "sweep", file, "--out", str(path), "--plot", f"{Path(file).stem}.svg"]
    return Answer(
        Headline(file, counted(points, "points"), rest, tone),
        why=[*written(values=str(path / "samples.parquet"), figure=plot)],
        hints=[Hint("draw it", drawing)] if plot is None else [],
    )
