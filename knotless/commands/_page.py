"""The options of commands that serve a page, and serving it."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from common.errors import EmulationError

if TYPE_CHECKING:
    from emulation.names import Names
    from web.app import Source
    from web.feed import Feed

PORT = 8088
START_LIMIT_S = 30.0

_OPTIONS = (
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=PORT,
        show_default=True,
        help="Port of the page; 0 is any free one.",
    ),
    click.option(
        "--host", default="127.0.0.1", show_default=True, help="Address on which it listens."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the address as JSON."),
)


def page_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a page to a command: ``host``, ``port`` and ``as_json``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def serve_page(source: Source, feed: Feed, host: str, port: int, *, as_json: bool) -> None:
    """Print the address of the page and serve it until Ctrl-C."""
    from web.serve import serve  # the server takes a while to load

    def ready(url: str) -> None:
        values: dict[str, Any] = {"url": url}
        click.echo(json.dumps(values) if as_json else f"{url} (Ctrl-C ends it)")

    serve(source, feed, host, port, ready)


def start_page(names: Names, port: int) -> str:
    """Start the page of a running fabric as a part of it, and return its address.

    It ends with the fabric. Raises :class:`EmulationError` with its reason if it does not start.
    """
    from emulation import state
    from emulation.names import REPOSITORY
    from emulation.runtime import Runtime, machine_lock

    at = ("--port", str(port))
    with machine_lock():
        runtime = Runtime(names, state.require_running(names))
        child = runtime.spawn(
            "web",
            [sys.executable, "-m", "knotless", "web", "--name", names.name, "--json", *at],
            directory=REPOSITORY,
            stdout=subprocess.PIPE,
        )
    if child.stdout is None:  # pragma: no cover - it is a pipe
        raise ValueError("no pipe")
    with child.stdout as pipe:
        ready, _, _ = select.select([pipe], [], [], START_LIMIT_S)
        line = pipe.readline() if ready else b""
    try:
        return str(json.loads(line)["url"])
    except (ValueError, KeyError, TypeError):
        runtime.stop("web")
        raise EmulationError(f"the page does not start: {runtime.last_words('web')}") from None
