"""``knotless top``: a running fabric in the terminal."""

from __future__ import annotations

import click

from knotless.cli.commands._options import name_option

EXAMPLE = """\b
Example: sudo knotless top
         ssh MACHINE -t sudo knotless top --name my-fabric
"""


@click.command("top", epilog=EXAMPLE)
@name_option
def command(name: str) -> None:
    """Show the channels of a running fabric, busiest first, and explain a deadlock.

    The same data as knotless web. q quits, s sorts, i shows idle channels.
    """
    from knotless.emulation.names import names_of
    from knotless.emulation.runtime import require_root

    names = names_of(name)
    require_root()
    from knotless.web.live import LiveFabric
    from knotless.web.top import Top  # Textual takes a while to load

    Top(LiveFabric(names)).run()
