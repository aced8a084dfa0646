"""Shared by benchmarks: tables of stored runs; a mistake gives one line and exit status 2."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from knotless.base.errors import KnotlessError
from knotless.base.files import read_text
from knotless.emulation.signals import end_at_signal
from knotless.results.machine import machine, versions

Command = TypeVar("Command", bound=Callable[..., Any])


def about() -> dict[str, Any]:
    """Return machine and versions, to be stored with a run; call it when the run begins."""
    return {"machine": machine(), "versions": versions()}


def as_stored(begun: Mapping[str, Any], **results: Any) -> str:
    """Return the JSON of a run: what :func:`about` returned, the results, and the load now.

    One line: nobody reads it, and a new run changes most of it.
    """
    return json.dumps({**begun, "load_1min_after": machine()["load_1min"], **results})


def machine_line(run: Mapping[str, Any]) -> str:
    """Return the machine of a stored run in words, with its load (one-minute average)."""
    host = run["machine"]
    load = f"{host['load_1min']:.1f} after the run"
    if "load_1min_after" in run:
        load = f"{host['load_1min']:.1f} before the run and {run['load_1min_after']:.1f} after it"
    rows = run.get("rows", ())
    loads = [row["load_1min"] for row in rows if "load_1min" in row]
    if loads:
        load = f"{min(loads):.1f} to {max(loads):.1f} when the rows were measured"
    processors = dict.fromkeys([row.get("cpu", host["cpu"]) for row in rows] or [host["cpu"]])
    return (
        f"Machine: {host['cores']} cores ({' or '.join(processors)}),"
        f" {host['memory_mib'] / 1024:.1f} GiB, {host['system']} {host['kernel'].split('-')[0]};"
        f" load {load}."
    )


def table_option(table_of: Callable[[Any], Sequence[str]]) -> Callable[[Command], Command]:
    """Return ``--table FILE``, which prints the lines of a stored run (parsed JSON) and exits."""

    def show(context: click.Context, _option: object, stored: Path | None) -> None:
        if stored is not None:
            click.echo("\n".join(table_of(json.loads(stored.read_text(encoding="utf-8")))))
            context.exit()

    return click.option(
        "--table",
        type=click.Path(exists=True, path_type=Path),
        callback=show,
        expose_value=False,
        is_eager=True,
        help="Print the table of a stored run.",
    )


Row = Mapping[str, Any]

into_option = click.option(
    "--into",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Put the rows into this stored run, in place of those of the same cases.",
)


def merged(stored: Sequence[Row], new: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Return the stored rows that differ from all new ones in ``keys``, then the new ones."""

    def case(row: Row) -> tuple[object, ...]:
        return tuple(row[key] for key in keys)

    measured = {case(row) for row in new}
    return [*(row for row in stored if case(row) not in measured), *new]


def merged_into(path: Path, new: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Return the rows of a stored run, if there is one, merged with new ones.

    Each row names the processor on which it was measured (``cpu``).
    """
    stored = json.loads(read_text(path)) if path.exists() else {"rows": []}
    rows = [{"cpu": stored["machine"]["cpu"], **row} for row in stored["rows"]]
    here = machine()["cpu"]
    return merged(rows, [{**row, "cpu": here} for row in new], keys)


def run_benchmark(benchmark: click.Command) -> None:
    """Run the command of a benchmark and exit; TERM takes its fabric down, as Ctrl-C does."""
    end_at_signal()
    try:
        benchmark()
    except KnotlessError as error:
        click.echo(f"knotless: {error}", err=True)
        sys.exit(2)
