"""``knotless attach``: the prompt of a running fabric, or a shell on one of its hosts."""

from __future__ import annotations

import os

import click

from knotless.cli import complete
from knotless.cli.commands._observed import observed
from knotless.cli.commands.exec import replace_by
from knotless.cli.options import observed_name_option
from knotless.emulation.running_fabric import RunningFabric

EXAMPLE = """\b
Example: knotless attach
         mininet> pingall
         knotless attach h1
"""


@click.command("attach", epilog=EXAMPLE)
@observed_name_option
@click.argument("host", required=False, shell_complete=complete.hosts)
def command(name: str | None, host: str | None) -> None:
    """Open the prompt of a running fabric, or a shell on HOST.

    Several may be open at once. Leaving one changes nothing: the fabric goes on.
    """
    running = RunningFabric(observed(name))
    if host is not None:
        replace_by(running, host, (os.environ.get("SHELL") or "/bin/sh",))
    from knotless.cli.prompt import Prompt
    from knotless.emulation.attached import attach, detach

    net = attach(running)
    try:
        Prompt(net)
    finally:
        detach(net)
