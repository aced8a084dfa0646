"""``knotless cut``: cut a link of a running fabric."""

from __future__ import annotations

import click

from knotless.cli.answer import Answer, Headline, Hint, Tone, print_answer
from knotless.cli.options import (
    json_option,
    link_argument,
    name_option,
    name_words,
    print_json,
)
from knotless.emulation.cuts import Cables
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics

EXAMPLE = """\b
Example: knotless cut s1-s2
         knotless cut s1:2-s2:3 --silent --from s1
         knotless mend s1-s2
"""


@click.command("cut", epilog=EXAMPLE)
@link_argument
@click.option("--silent", is_flag=True, help="Drop the frames and leave the carrier up.")
@click.option("--from", "sender", metavar="END", help="Drop only what this end sends (--silent).")
@name_option
@json_option
def command(link: str, silent: bool, sender: str | None, name: str, as_json: bool) -> None:
    """Cut LINK of a running fabric: s1-s2, s1:2-s2:3, h1-s1 or h1.

    Both ends lose the carrier, as if the cable had been pulled. With --silent they do not: the
    emulator drops the frames.
    """
    require_fabrics()
    cables = Cables.of_running(names_of(name))
    cable = cables.one(link)
    cables.cut(cable, silent=silent, sender=sender)
    if as_json:
        print_json({"link": cable.name, "up": False, "carrier": silent, "from": sender})
    else:
        print_answer(cut_answer(cable.name, name, silent=silent, sender=sender))


def cut_answer(link: str, name: str, *, silent: bool, sender: str | None) -> Answer:
    """Return what to say about a link of the fabric ``name`` that was cut."""
    only = f" from {sender}" if sender else ""
    effect = f"drops every frame{only}, with carrier" if silent else "has no carrier"
    mend = Hint("restore it", ["knotless", "mend", link, *name_words(name)])
    routes = Hint("see what routes do", ["knotless", "status", *name_words(name)])
    return Answer(Headline(link, "cut", f", {effect}", Tone.OPEN), hints=[mend, routes])
