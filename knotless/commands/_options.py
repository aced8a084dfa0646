"""Options that several subcommands share."""

from __future__ import annotations

import json
from collections.abc import Mapping

import click
from rich.console import Console
from rich.table import Table

from knotless.shown import formatted

MAX_SLOW_DOWN = 1e6
"""Largest K of ``--slow-down K``."""

name_option = click.option(
    "--name", default="default", show_default=True, help="Name of the running fabric."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def print_json(values: Mapping[str, object]) -> None:
    """Print ``values`` as one JSON object."""
    click.echo(json.dumps(values, indent=1))


def print_table(title: str, values: Mapping[str, object]) -> None:
    """Print names and values as a table."""
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(name.replace("_", " "), formatted(value))
    Console().print(table)
