"""``knotless release``: end a deadlock of a running fabric."""

from __future__ import annotations

import click

from common.errors import EmulationError
from emulation.demonstration import release
from emulation.names import names_of
from emulation.runtime import require_root
from knotless.commands._options import json_option, name_option, print_json


@click.command("release", epilog="Example: knotless release")
@name_option
@json_option
def command(name: str, as_json: bool) -> None:
    """End a deadlock: stop the traffic of knotless, drop all frames, reset all counters.

    Nothing else can end one. Programs that still send close it again.
    """
    require_root()
    if not release(names_of(name)):
        raise EmulationError("the frames are dropped, but programs on hosts still send")
    if as_json:
        print_json({"released": True})
    else:
        click.echo("released: no frame is in the network")
