"""``knotless lab``: start a fabric and give the Mininet prompt."""

from __future__ import annotations

import json
from typing import Any

import click

from emulation.names import names_of
from emulation.network import EmulatedFabric
from emulation.prompt import Prompt
from emulation.report import report
from emulation.runtime import require_root
from emulation.supervisor import end_at_signal
from knotless.commands._fabric import fabric_of, fabric_options, host_tags_of

EXAMPLE = """\b
Example: knotless lab ring,4 --engine updown
         mininet> pingall
         mininet> deadlock
"""


@click.command("lab", epilog=EXAMPLE)
@fabric_options
def command(
    spec: str, rate: float | None, delay: float | None, as_json: bool, **options: Any
) -> None:
    """Start fabric SPEC and open the Mininet prompt; leaving it removes everything.

    Beside Mininet's commands the prompt has: deadlock, counters [CHANNEL], lateness.
    """
    require_root()
    end_at_signal()
    described = fabric_of(spec, rate, delay)
    fabric = EmulatedFabric(
        described,
        host_tags=host_tags_of(described, options),
        progress=lambda step: click.echo(f"*** {step}", err=True),
        **options,
    )
    with fabric:
        if as_json:
            click.echo(json.dumps(report(names_of(options["name"]))))
        Prompt(fabric)
