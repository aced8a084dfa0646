"""The option that declares multicast groups."""

from __future__ import annotations

import click

from routing.multicast import parse


def _parsed(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[int, list[str]]:
    return parse(texts)


multicast_option = click.option(
    "--multicast",
    multiple=True,
    callback=_parsed,
    metavar="N=HOST,...",
    help="Declare multicast group N, MAC 03:00:00:00:NN:NN (in hex), with these members or 'all';"
    " may be given several times. What is sent to other groups goes to all hosts.",
)
