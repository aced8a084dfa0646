"""``knotless report``: regenerate a run's report, or compare several runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from knotless.base.counting import counted
from knotless.base.files import write_whole
from knotless.cli.answer import Answer, Headline, Table, print_answer
from knotless.cli.options import json_option, print_json
from knotless.results import results
from knotless.results.document import whose_rows_may_not_fit
from knotless.results.spread import Spread
from knotless_experiments.framework import experiment as catalogue
from knotless_experiments.framework.compare import Line, Run, compare


@click.command(name="report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", metavar="F.html", help="Write the comparison to this file.")
@json_option
def command(runs: tuple[str, ...], out: str | None, as_json: bool) -> None:
    """Regenerate report.html of each RUN (a folder of results); compare several.

    The comparison shows the means over the valid repeats of each case, with their spread, and each
    run's ratio to the first run.

    Example: knotless report results/traffic-20261121T080513Z-5298
    """
    read = [results.read(Path(run))[0] for run in runs]
    experiment = catalogue.load(read[0]["experiment"])
    from knotless_experiments.framework import report

    with whose_rows_may_not_fit(" ".join(runs), results.ResultsError):
        lines = compare(experiment, read) if len(read) > 1 else []
        paths = [report.make(Path(run), experiment)[0] for run in runs]
        if out is not None:
            write_whole(out, report.render_comparison(read, lines))
            paths.append(Path(out))
    if as_json:
        values = {"experiment": experiment.name, "runs": [run["id"] for run in read]}
        line_values = [line.as_json() for line in lines]
        print_json({**values, "reports": [str(path) for path in paths], "lines": line_values})
        return
    answer = Answer(
        Headline(experiment.name, counted(len(read), "runs"), f"in {paths[-1]}"),
        tables=[_table(read, lines)] if lines else [],
        remarks=[f"report with plots: {path}" for path in paths[:-1]],
    )
    print_answer(answer, details=True)


def _table(runs: Sequence[Run], lines: Sequence[Line]) -> Table:
    """Return the comparison: a row for each figure of each case, a column for each run."""
    places = [run["parameters"].get("on", "emulation") for run in runs]
    return Table(
        "",
        ["case", "figure", *(f"{run['id']} ({on})" for run, on in zip(runs, places, strict=True))],
        [
            [
                " ".join(str(value) for value in line.case.values() if value is not None),
                line.measure,
                *map(_cell, line.spreads, line.ratios),
            ]
            for line in lines
        ],
    )


def _cell(spread: Spread | None, ratio: float | None) -> str:
    if spread is None:
        return "-"
    around = f" ({spread.least:.4g} to {spread.most:.4g})" if spread.count > 1 else ""
    times = "" if ratio is None else f" x{ratio:.3f}"
    return f"{spread.mean:.4g}{around}{times}"
