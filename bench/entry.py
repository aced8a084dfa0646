"""What benchmarks share: tables of stored runs; a mistake gives one line and exit status 2."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from common.errors import KnotlessError
from emulation.signals import end_at_signal

Command = TypeVar("Command", bound=Callable[..., Any])


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


def run_benchmark(benchmark: click.Command) -> None:
    """Run the command of a benchmark and exit; TERM takes its fabric down, as Ctrl-C does."""
    end_at_signal()
    try:
        benchmark()
    except KnotlessError as error:
        click.echo(f"knotless: {error}", err=True)
        sys.exit(2)
