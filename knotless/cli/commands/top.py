"""``knotless top``: a running fabric in the terminal."""

from __future__ import annotations

import asyncio
import sys

import click

from knotless.cli.options import name_option
from knotless.cli.output import say

EXAMPLE = """\b
Example: sudo knotless top
         sudo knotless top --once
         ssh MACHINE -t sudo knotless top --name my-fabric
"""


@click.command("top", epilog=EXAMPLE)
@name_option
@click.option("--once", is_flag=True, help="Print the view once, as text, and end.")
def command(name: str, once: bool) -> None:
    """Show the channels of a running fabric, busiest first, and explain a deadlock.

    The same data as knotless web. q quits, s sorts, i shows idle channels. Channels of a deadlock
    come first. With --once the exit status is 1 if there is a problem, as of knotless status.
    """
    from knotless.emulation.names import names_of
    from knotless.emulation.requirements import require_fabrics

    names = names_of(name)
    require_fabrics()
    from knotless.web import top  # Textual takes a while to load
    from knotless.web.live import LiveFabric

    source = LiveFabric(names)
    if not once:
        top.Top(source).run()
        return
    for line in asyncio.run(top.once(source)):
        say(line)
    if source.feed.state.get("problems"):
        sys.exit(1)
