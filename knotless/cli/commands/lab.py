"""``knotless lab``: start a fabric and open the Mininet prompt."""

from __future__ import annotations

from typing import Any

import click

from knotless.cli.commands._fabric import checked_plan_of, fabric_options
from knotless.cli.help import Command
from knotless.cli.output import say, say_json
from knotless.cli.prompt import Prompt
from knotless.emulation.names import names_of
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.report import report
from knotless.emulation.requirements import require_fabrics
from knotless.emulation.signals import end_at_signal
from knotless.routing.request import PlanRequest

EXAMPLE = """\b
Example: knotless lab ring,4 --engine updown
         mininet> pingall
         mininet> why
"""


@click.command("lab", cls=Command, epilog=EXAMPLE)
@fabric_options
def command(
    spec: str,
    request: PlanRequest,
    rate: float | None,
    delay: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Start fabric SPEC and open the Mininet prompt; leaving it removes everything.

    A plan that can deadlock under the flow control in use is refused.

    Additional commands at the prompt: deadlock, why (the deadlock explained), counters [CHANNEL],
    top (paused channels, every second), stretch, pause HOST, flowcontrol MODE, capture LINK FILE,
    link END1 END2 up|down, switch NAME stop|start|restart; status, check, change, drain, undrain,
    cut, mend, traffic, freeze, release and web as in the shell. 'help WORD' explains each.
    """
    require_fabrics()
    end_at_signal()
    checked = checked_plan_of(spec, request, rate, delay, options)
    plan = checked.plan
    say(f"*** flow control {plan.flow_control}: {checked.verdict.text}", err=True)
    fabric = EmulatedFabric.from_plan(
        plan,
        progress=lambda step: say(f"*** {step}", err=True),
        **options,
    )
    with fabric:
        if as_json:
            say_json(report(names_of(options["name"])))
        Prompt(fabric.net)
