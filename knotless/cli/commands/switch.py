"""``knotless switch``: stop, start and restart switches of a running fabric."""

from __future__ import annotations

import click

from knotless.cli import complete
from knotless.cli.answer import Answer, Headline, Tone, print_answer
from knotless.cli.groups import SuggestingGroup
from knotless.cli.options import json_option, name_option, print_json
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics
from knotless.emulation.switches import Switches

EXAMPLE = """\b
Example: knotless switch restart s6
         knotless switch stop s6
         knotless switch start s6
         knotless switch restart --all
"""
switches_argument = click.argument(
    "switches", nargs=-1, metavar="SWITCH...", shell_complete=complete.switches
)


@click.group("switch", cls=SuggestingGroup, epilog=EXAMPLE)
def command() -> None:
    """Stop, start and restart switches of a running fabric."""


@command.command("stop", epilog="Example: knotless switch stop s6")
@switches_argument
@name_option
@json_option
def stop(switches: tuple[str, ...], name: str, as_json: bool) -> None:
    """Stop each SWITCH, as in a power failure: its rules go, its links lose their carrier.

    The frames in its buffers are lost, and counted as reboot. The run stays valid.
    """
    require_fabrics()
    _require(switches)
    Switches(names_of(name)).stop(*switches)
    _show(name, "stopped", switches, as_json)


@command.command("start", epilog="Example: knotless switch start s6")
@switches_argument
@name_option
@json_option
def start(switches: tuple[str, ...], name: str, as_json: bool) -> None:
    """Start each SWITCH that is stopped, with its ports and without rules.

    The controller installs the rules. Links that were cut stay cut.
    """
    require_fabrics()
    _require(switches)
    Switches(names_of(name)).start(*switches)
    _show(name, "started", switches, as_json)


@command.command(
    "restart",
    epilog="""\b
Example: knotless switch restart s6
         knotless switch restart --all
""",
)
@switches_argument
@click.option(
    "--all", "every", is_flag=True, help="All switches; also starts an Open vSwitch that has died."
)
@name_option
@json_option
def restart(switches: tuple[str, ...], every: bool, name: str, as_json: bool) -> None:
    """Stop each SWITCH and start it again.

    With --all, switches whose Open vSwitch process has died get a new one, with the namespace,
    memory allocator and priority of the one before.
    """
    require_fabrics()
    if every and switches:
        raise click.UsageError("--all names every switch: omit the others")
    if not every:
        _require(switches)
        Switches(names_of(name)).restart(*switches)
        return _show(name, "restarted", switches, as_json)
    revived = Switches(names_of(name)).restart_all()
    if as_json:
        return print_json({"fabric": name, "restarted": "all", "revived": revived})
    why = [f"Open vSwitch had died, and runs again, of: {', '.join(revived)}"] if revived else []
    return print_answer(Answer(Headline("all switches", "restarted"), why=why))


def _require(switches: tuple[str, ...]) -> None:
    if not switches:
        raise click.UsageError("name a switch, such as s6")


def _show(name: str, what: str, switches: tuple[str, ...], as_json: bool) -> None:
    """Print what has become of switches."""
    if as_json:
        print_json({"fabric": name, what: list(switches)})
    else:
        tone = Tone.OPEN if what == "stopped" else Tone.GOOD
        print_answer(Answer(Headline(", ".join(switches), what, tone=tone)))
