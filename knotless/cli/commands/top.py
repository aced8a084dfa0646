"""``knotless top``: a running fabric in the terminal."""

from __future__ import annotations

import asyncio
import sys

import click

from knotless.cli.answer import Answer, Headline, Table, Tone, print_answer
from knotless.cli.commands._observed import observed
from knotless.cli.options import observed_name_option

EXAMPLE = """\b
Example: sudo knotless top
         sudo knotless top --once
         ssh MACHINE -t sudo knotless top --name my-fabric
"""


@click.command("top", epilog=EXAMPLE)
@observed_name_option
@click.option("--once", is_flag=True, help="Print the view once, as text, and end.")
def command(name: str | None, once: bool) -> None:
    """Show the channels of a running fabric, busiest first, and explain a deadlock.

    The same data as knotless web. q quits, s sorts, i shows idle channels. Channels of a deadlock
    come first. With --once the exit status is 1 if there is a problem, as of knotless status.
    """
    names = observed(name)
    from knotless.web import top  # Textual takes a while to load
    from knotless.web.live import LiveFabric

    source = LiveFabric(names)
    if not once:
        top.Top(source).run()
        return
    texts, lines = asyncio.run(top.once(source))
    has_problems = bool(source.feed.state.get("problems"))
    word, tone = ("with problems", Tone.BAD) if has_problems else ("no problem", Tone.GOOD)
    table = Table("", top.COLUMNS, lines)
    headline = Headline(f"fabric {names.name!r}", word, tone=tone)
    print_answer(Answer(headline, texts, tables=[table]), details=True)  # every channel
    sys.exit(int(has_problems))
