"""``knotless link``: change a link of a running fabric."""

from __future__ import annotations

import click

from knotless.base.quantities import MBPS, MICROSECONDS, SHARE
from knotless.cli.answer import Answer, Headline, Several, print_answer
from knotless.cli.numbers import Number
from knotless.cli.options import json_option, link_argument, name_option, print_json
from knotless.emulation import lines
from knotless.emulation.cuts import Cables
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics
from knotless.simulation.settings import MAX_LINE_ERRORS
from knotless.topologies.validate import MAX_DELAY_US

EXAMPLE = """\b
Example: knotless link s1-s2 --loss 1%
         knotless link s1-s2 --from s1 --rate 5 --delay 1000
         knotless link s1-s2
"""


SHARE_OF_FRAMES = Number(0, 1, SHARE)


@click.command("link", epilog=EXAMPLE)
@link_argument
@click.option("--from", "sender", metavar="END", help="Change only what this end sends.")
@click.option("--rate", "rate_mbps", type=Number(min=0.001, max=400_000, unit=MBPS))
@click.option(
    "--delay",
    "delay_us",
    type=Number(min=0, max=MAX_DELAY_US, unit=MICROSECONDS),
    help="One-way delay, in virtual time.",
)
@click.option(
    "--jitter",
    "jitter_us",
    type=Number(min=0, max=MAX_DELAY_US, unit=MICROSECONDS),
    help="Frames arrive up to this much later, at random but in order.",
)
@click.option("--loss", type=SHARE_OF_FRAMES, help="Lose this share of frames: 1% or 0.01.")
@click.option("--corrupt", type=SHARE_OF_FRAMES, help="Damage it; the receiver drops it.")
@click.option("--duplicate", type=SHARE_OF_FRAMES, help="Carry it twice.")
@click.option("--reorder", type=SHARE_OF_FRAMES, help="Have it arrive two frames late.")
@click.option("--line-errors", type=Number(0, MAX_LINE_ERRORS), help="Bit error rate.")
@name_option
@json_option
def command(link: str, sender: str | None, name: str, as_json: bool, **given: float | None) -> None:
    """Change LINK of a running fabric while frames are under way: s1-s2, s1:2-s2:3, h1-s1 or h1.

    Frames that wait or are under way stay, in their order. What is not given stays as it is; 0 ends
    a fault. Which frames are affected follows from the seed of the fabric. PAUSE and PFC are never
    affected, and buffers get the room that the link needs. Without options, show the link.
    """
    require_fabrics()
    cables = Cables.of_running(names_of(name))
    cable = cables.one(link)
    changes = {key: value for key, value in given.items() if value is not None}
    channels = cables.set_line(cable, changes, sender=sender)
    if as_json:
        print_json({"link": cable.name, "channels": channels})
    else:
        word = "changed" if changes else "as it is"
        ways = Several([lines.line_text(line) for line in channels], "directions", len(channels))
        print_answer(Answer(Headline(cable.name, word), why=[ways]))
