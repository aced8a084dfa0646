"""``knotless report``: regenerate a run's report, or compare several runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from knotless.base.files import write_whole
from knotless.base.printable import rich_text
from knotless.cli.options import json_option, print_json
from knotless.cli.output import say
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
    if lines:
        _show(read, lines)
    for path in paths:
        say(f"Report: {path}")


def _show(runs: Sequence[Run], lines: Sequence[Line]) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("case", overflow="fold")
    table.add_column("figure", no_wrap=True)
    for run in runs:
        on = run["parameters"].get("on", "emulation")
        table.add_column(rich_text(f"{run['id']} ({on})"))
    for line in lines:
        words = [str(value) for value in line.case.values() if value is not None]
        cells = [
            _cell(spread, ratio) for spread, ratio in zip(line.spreads, line.ratios, strict=True)
        ]
        table.add_row(*map(rich_text, [" ".join(words), line.measure, *cells]))
    Console().print(table)


def _cell(spread: Spread | None, ratio: float | None) -> str:
    if spread is None:
        return "-"
    around = f" ({spread.least:.4g} to {spread.most:.4g})" if spread.count > 1 else ""
    times = "" if ratio is None else f" x{ratio:.3f}"
    return f"{spread.mean:.4g}{around}{times}"
