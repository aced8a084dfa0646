"""``knotless reproduction``: the pages that are made from stored runs."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.reproduction import page
from experiments.studies.agreement import page as agreement
from knotless.commands._options import json_option, print_json, write_text
from runs import stored

DEFAULT_PAGE = stored.FOLDER.parent / "reproduction.md"
AGREEMENT = "agreement.md"
"""The page beside it that puts the emulator beside the simulator."""


@click.command(name="reproduction")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--stored", "folder", metavar="DIR", help="Where runs are kept (docs/runs).")
@click.option("--out", metavar="F.md", help="The page to write (docs/reproduction.md).")
@json_option
def command(runs: tuple[str, ...], folder: str | None, out: str | None, as_json: bool) -> None:
    """Store each RUN (a folder of results), then write the page from all stored runs.

    The emulator beside the simulator is in agreement.md, beside the page.

    Example: knotless reproduction results/traffic-20261121T080513Z-5298
    """
    where = stored.FOLDER if folder is None else Path(folder)
    kept = [str(stored.keep(Path(run), where)) for run in runs]
    known = stored.read(where)
    path = str(DEFAULT_PAGE if out is None else Path(out))
    write_text(path, page.text(known))
    write_text(str(Path(path).with_name(AGREEMENT)), agreement.text(known))
    if as_json:
        print_json({"page": path, "stored": kept, "runs": len(known.runs)})
    else:
        click.echo(f"{path}: from {len(known.runs)} runs")
