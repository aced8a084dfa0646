"""``knotless mend``: restore a link of a running fabric."""

from __future__ import annotations

import click

from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.options import json_option, link_argument, name_option, print_json
from knotless.emulation.cuts import Cables
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics

EXAMPLE = """\b
Example: knotless mend s1-s2
"""


@click.command("mend", epilog=EXAMPLE)
@link_argument
@name_option
@json_option
def command(link: str, name: str, as_json: bool) -> None:
    """Restore LINK of a running fabric, however it was cut: s1-s2, s1:2-s2:3, h1-s1 or h1."""
    require_fabrics()
    cables = Cables.of_running(names_of(name))
    cable = cables.one(link)
    cables.mend(cable)
    if as_json:
        print_json({"link": cable.name, "up": True, "carrier": True, "from": None})
    else:
        print_answer(Answer(Headline(cable.name, "mended", ", carries frames again")))
