"""How benchmarks end: a mistake of the user gives one line and exit status 2."""

from __future__ import annotations

import sys

import click

from common.errors import KnotlessError


def run_benchmark(benchmark: click.Command) -> None:
    """Run the command of a benchmark and exit."""
    try:
        benchmark()
    except KnotlessError as error:
        click.echo(f"knotless: {error}", err=True)
        sys.exit(2)
