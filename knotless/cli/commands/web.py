"""``knotless web``: a live page of a running fabric."""

from __future__ import annotations

from urllib.parse import urlsplit

import click

from knotless.base.errors import KnotlessError
from knotless.base.files import read_text
from knotless.cli.commands._observed import observed
from knotless.cli.commands._page import page_options, serve_page
from knotless.cli.options import observed_name_option

EXAMPLE = """\b
Example: sudo knotless web
         sudo knotless web --name my-fabric --port 0
         knotless web --controller http://127.0.0.1:8080 --token-file token
"""


@click.command("web", epilog=EXAMPLE)
@observed_name_option
@click.option(
    "--controller", metavar="URL", help="Show a controller of ours instead of a fabric of ours."
)
@click.option(
    "--token-file", metavar="FILE", help="With --controller: its token, which permits changes."
)
@page_options
def command(
    name: str | None,
    controller: str | None,
    token_file: str | None,
    host: str,
    port: int,
    public_origin: tuple[str, ...],
    as_json: bool,
) -> None:
    """Serve a live page of a running fabric, and print its address.

    The page shows load, pauses, buffers and drops of every channel, and explains a deadlock as it
    forms. It stays open while fabric and controller end and start again. Actions need the token in
    /run/knotless/NAME/rest-token.
    """
    from knotless.web.live import LiveController, LiveFabric

    if controller is None:
        if token_file is not None:
            raise KnotlessError("--token-file is for --controller; a fabric has its own token")
        fabric = LiveFabric(observed(name))
        serve_page(fabric, fabric.feed, host, port, public_origin, as_json=as_json)
        return
    if name is not None:
        raise KnotlessError("give either --name of a fabric or --controller")
    token = None if token_file is None else read_text(token_file).strip()
    watched = LiveController(_address(controller), token)
    serve_page(watched, watched.feed, host, port, public_origin, as_json=as_json)


def _address(url: str) -> tuple[str, int]:
    """Return host and port of a controller's URL."""
    try:
        parts = urlsplit(url)
        address = (parts.hostname or "", parts.port or 80)
    except ValueError:
        address = ("", 0)
    if not address[0] or urlsplit(url).scheme != "http":
        raise KnotlessError(f"--controller {url[:80]!r}: it is written http://HOST:PORT")
    return address
