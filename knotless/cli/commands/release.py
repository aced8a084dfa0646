"""``knotless release``: end a deadlock of a running fabric."""

from __future__ import annotations

import click

from knotless.base.errors import EmulationError
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.options import json_option, name_option, print_json
from knotless.emulation.demonstration import release
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics


@click.command("release", epilog="Example: knotless release")
@name_option
@json_option
def command(name: str, as_json: bool) -> None:
    """End a deadlock: stop the traffic of knotless, drop all frames, reset all counters.

    Nothing else can end one. Programs that still send close it again.
    """
    require_fabrics()
    if not release(names_of(name)):
        raise EmulationError("the frames are dropped, but programs on hosts still send")
    if as_json:
        print_json({"released": True})
    else:
        headline = Headline(f"fabric {name!r}", "released", ", no frame is in the network")
        print_answer(Answer(headline))
