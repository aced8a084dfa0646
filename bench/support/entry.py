"""Shared by benchmarks: their options, and what they print and store.

A benchmark is a function that measures and adds rows to a :class:`Run`, and one that makes the
table of a stored run. :func:`benchmark` makes a command of both::

    @benchmark(table_of, keys=("fabric",))
    @click.option("--fabric", "specs", multiple=True, default=FABRICS)
    def main(run: Run, specs: tuple[str, ...]) -> None:
        for spec in specs:
            run.add(measure(spec))

A mistake gives one line and exit status 2.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from knotless.base.errors import KnotlessError
from knotless.base.files import read_text, write_whole
from knotless.cli.numbers import Whole
from knotless.emulation.signals import end_at_signal
from knotless.results.machine import machine, versions

Command = TypeVar("Command", bound=Callable[..., Any])
Row = Mapping[str, Any]
Table = Callable[[Any], Sequence[str]]
"""A stored run (parsed JSON) -> the lines of its table."""


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


def table_option(table_of: Table) -> Callable[[Command], Command]:
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


def case_option(measure: Callable[[int], Row]) -> Callable[[Command], Command]:
    """Return the hidden ``--case N``, which prints the row of a case; see in_its_own_process."""

    def show(context: click.Context, _option: object, number: int | None) -> None:
        if number is not None:
            click.echo(json.dumps(measure(number)))
            context.exit()

    return click.option(
        "--case", type=Whole(), callback=show, expose_value=False, is_eager=True, hidden=True
    )


def in_its_own_process(module: str, number: int, limit_s: float) -> dict[str, Any]:
    """Measure a case of a module with :func:`case_option` in a new process, for its peak memory."""
    command = [sys.executable, "-m", module, "--case", str(number)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit_s)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


class Run:
    """What a benchmark has measured since it began.

    Parameters
    ----------
    into : the stored run into which rows are put as soon as they are measured, if any.
    keys : the columns that tell the cases of a stored run apart.
    order : sorts the rows of a stored run; None: they stay in the order of measurement.

    """

    def __init__(
        self, into: Path | None, keys: Sequence[str], order: Callable[[Row], Any] | None
    ) -> None:
        self._begun, self._more = about(), dict[str, Any]()
        self._rows: list[Row] = []
        self._into, self._keys, self._order = into, keys, order
        self._stored = [] if into is None else stored_rows(into)

    def add(self, *rows: Row) -> None:
        """Add rows; those of a case that is stored in several are added together."""
        for row in rows:
            click.echo(json.dumps(row), err=True)
        self._rows += rows
        if self._into is not None:
            new = [{**row, "cpu": machine()["cpu"]} for row in self._rows]
            both = merged(self._stored, new, self._keys)
            if self._order is not None:
                both.sort(key=self._order)
            write_whole(self._into, as_stored(self._begun, **self._more, rows=both) + "\n")

    def more(self, **results: Any) -> None:
        """Add what the run has beside its rows; before them, if it is put into a stored run."""
        self._more |= results

    @property
    def value(self) -> dict[str, Any]:
        """The run, as a table is made of it."""
        return {**self._begun, **self._more, "rows": self._rows}

    def as_json(self) -> str:
        """Return the run as it is stored."""
        return as_stored(self._begun, **self._more, rows=self._rows)


def benchmark(
    table_of: Table, *, keys: Sequence[str] = (), order: Callable[[Row], Any] | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that makes a command of a function that measures.

    The function gets a :class:`Run` and its own options. The command has ``--json`` and ``--table``
    too, and ``--into`` if there are ``keys``. It prints each row to standard error when it is
    measured, and in the end the table, or with ``--json`` the run.
    """

    def command_of(measure: Callable[..., None]) -> click.Command:
        @wraps(measure)
        def command(as_json: bool, into: Path | None = None, **options: Any) -> None:
            run = Run(into, keys, order)
            measure(run, **options)
            click.echo(run.as_json() if as_json else "\n".join(table_of(run.value)))

        options = [
            click.option("--json", "as_json", is_flag=True, help="Print JSON for programs."),
            table_option(table_of),
        ]
        if keys:
            options.append(
                click.option(
                    "--into",
                    type=click.Path(dir_okay=False, path_type=Path),
                    help="Put the rows into this stored run, in place of those of the same cases.",
                )
            )
        for option in options:
            option(command)
        return click.command()(command)

    return command_of


def merged(stored: Sequence[Row], new: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Return the stored rows that differ from all new ones in ``keys``, then the new ones."""

    def case(row: Row) -> tuple[object, ...]:
        return tuple(row[key] for key in keys)

    measured = {case(row) for row in new}
    return [*(row for row in stored if case(row) not in measured), *new]


def stored_rows(path: Path) -> list[Row]:
    """Return the rows of a stored run, if there is one, each with its processor (``cpu``)."""
    stored = json.loads(read_text(path)) if path.exists() else {"rows": []}
    return [{"cpu": stored["machine"]["cpu"], **row} for row in stored["rows"]]


def run_benchmark(benchmark: click.Command) -> None:
    """Run the command of a benchmark and exit; TERM takes its fabric down, as Ctrl-C does."""
    end_at_signal()
    try:
        benchmark()
    except KnotlessError as error:
        click.echo(f"knotless: {error}", err=True)
        sys.exit(2)
