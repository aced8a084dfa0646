"""``knotless down``: stop fabrics, and remove what remains of them after a crash."""

from __future__ import annotations

import click

from knotless.cli import complete
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.options import json_option, lower_case
from knotless.cli.output import say_json
from knotless.emulation.names import DEFAULT_NAME, names_of, running_names
from knotless.emulation.requirements import require_fabrics
from knotless.emulation.runtime import remove

EXAMPLE = """\b
Example: knotless down
         knotless down --all
"""


@click.command("down", epilog=EXAMPLE)
@click.option(
    "--name",
    callback=lower_case,
    shell_complete=complete.names,
    help=f"Name of the fabric.  [default: {DEFAULT_NAME}]",
)
@click.option("--all", "every", is_flag=True, help="All fabrics, whoever started them.")
@json_option
def command(name: str | None, every: bool, as_json: bool) -> None:
    """Stop a fabric and remove everything that belongs to it, and nothing else.

    This works whoever started it, and whether or not some or all of its processes have died.
    """
    require_fabrics()
    if every and name is not None:
        raise click.UsageError("--all and --name exclude each other")
    wanted = running_names() if every else [name or DEFAULT_NAME]
    removed = [one for one in wanted if remove(names_of(one))]
    if as_json:
        say_json({"removed": removed})
    elif removed:
        subject = f"fabric {', '.join(map(repr, removed))}"
        print_answer(Answer(Headline(subject, "removed", ", with all that belongs to it")))
    else:
        subject = "all fabrics" if every else f"fabric {wanted[0]!r}"
        print_answer(Answer(Headline(subject, "not running")))
