"""``knotless up``: start a fabric in the background."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console

from emulation.names import names_of
from emulation.report import report
from emulation.runtime import require_root
from emulation.supervisor import start
from knotless.commands._fabric import fabric_of, fabric_options, host_tags_of

EXAMPLE = """\b
Example: knotless up torus,4,4 --engine dor
         knotless status; knotless check --live; knotless down
"""


@click.command("up", epilog=EXAMPLE)
@fabric_options
def command(
    spec: str, rate: float | None, delay: float | None, as_json: bool, **options: Any
) -> None:
    """Start fabric SPEC in the background; return when every switch has its rules."""
    require_root()
    fabric = fabric_of(spec, rate, delay)
    options["host_tags"] = host_tags_of(fabric, options)
    console = Console(stderr=True)
    with console.status("starting") as spinner:
        start(fabric, options, lambda step: _show(console, spinner, step))
    found = report(names_of(options["name"]))
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo(
            f"{fabric.name} is up as {options['name']!r}: {len(fabric.switches)} switches, "
            f"{len(fabric.hosts)} hosts, engine {options['engine']}, "
            f"flow control {options['flow_control']}"
        )


def _show(console: Console, spinner: Any, step: str) -> None:
    """Show a step; what was removed is said for good."""
    if step.startswith("removed"):
        console.print(step, highlight=False)
    spinner.update(step)
