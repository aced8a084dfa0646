"""``knotless controller``: the controller of a running fabric."""

from __future__ import annotations

import click

from knotless.base.counting import counted
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.groups import SuggestingGroup
from knotless.cli.options import json_option, name_option, print_json
from knotless.emulation import rest
from knotless.emulation.controller import restart
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics

EXAMPLE = """\b
Example: knotless controller restart
"""
CONFIRM_EXAMPLE = """\b
Example: knotless controller confirm
"""


@click.group("controller", cls=SuggestingGroup, epilog=EXAMPLE)
def command() -> None:
    """Look after the controller of a running fabric."""


@command.command("restart", epilog=EXAMPLE)
@name_option
@json_option
def restart_command(name: str, as_json: bool) -> None:
    """Start the controller again, dead or alive; return when every switch has its rules.

    The switches keep their rules and forward in the meantime. Rules that are correct are not
    touched. The controller reads /run/knotless/NAME/controller.yaml again.
    """
    require_fabrics()
    status = restart(names_of(name))
    if as_json:
        print_json(status)
    else:
        switches = counted(len(status["switches"]), "switches")
        rest_of = f", {switches} have their rules (pid {status['pid']})"
        print_answer(Answer(Headline(f"controller of {name!r}", "ready", rest_of)))


@command.command("confirm", epilog=CONFIRM_EXAMPLE)
@name_option
@json_option
def confirm_command(name: str, as_json: bool) -> None:
    """Confirm what is in force, after the file with the requests of operators was damaged.

    The controller then goes on to the options of its configuration, without the parts that are
    drained, in proven steps; problems in knotless status name these. To see the steps first:
    knotless change --dry-run.
    """
    require_fabrics()
    answer = rest.Controller(names_of(name)).post("/confirm", {})
    if as_json:
        print_json(answer)
    else:
        drained = f", drained: {', '.join(answer['drained']) or 'nothing'}"
        print_answer(Answer(Headline(f"controller of {name!r}", "confirmed", drained)))
