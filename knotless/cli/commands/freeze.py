"""``knotless freeze``: deadlock a running fabric on purpose."""

from __future__ import annotations

import click

from knotless.base.counting import counted
from knotless.base.quantities import SECONDS
from knotless.cli.answer import Answer, Cycle, Figure, Headline, Hint, Tone, print_answer
from knotless.cli.numbers import Number
from knotless.cli.options import json_option, name_option, name_words, print_json
from knotless.emulation.demonstration import FREEZE_LIMIT_S, freeze
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics

EXAMPLE = """\b
Example: knotless up ring,4 --engine dor --vcs 1 --select low-port --allow-deadlock
         knotless freeze
         knotless release
"""


@click.command("freeze", epilog=EXAMPLE)
@click.option(
    "--timeout",
    "timeout_s",
    type=Number(min=1, max=3600, unit=SECONDS),
    default=FREEZE_LIMIT_S,
    show_default=True,
    help="Time to wait for the deadlock.",
)
@name_option
@json_option
def command(timeout_s: float, name: str, as_json: bool) -> None:
    """Deadlock a running fabric whose rules allow it, and show the cycle.

    The hosts whose packets can close the cycle send until it is closed.
    """
    require_fabrics()
    deadlock = freeze(names_of(name), timeout_s)
    if as_json:
        print_json(
            {"since_us": deadlock.since_us, "cycle": deadlock.cycle, "members": deadlock.members}
        )
    else:
        since = Figure("", deadlock.since_us, "us").text
        which = name_words(name)
        print_answer(
            Answer(
                Headline(f"fabric {name!r}", "deadlocked", f"since {since}", Tone.BAD),
                why=[
                    Cycle(deadlock.cycle),
                    f"{counted(len(deadlock.members), 'channels')} can never send again",
                ],
                hints=[
                    Hint("see what waits where", ["knotless", "top", "--once", *which]),
                    Hint("end it", ["knotless", "release", *which]),
                ],
            )
        )
