"""The options of commands that serve a page, and serving it."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from knotless.base.errors import EmulationError
from knotless.base.http_rules import public_origin as origin_of
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.numbers import Whole
from knotless.cli.options import with_options
from knotless.cli.output import say_json

if TYPE_CHECKING:
    from knotless.emulation.names import Names
    from knotless.web.app import Source
    from knotless.web.feed import Feed

PORT = 8088
START_LIMIT_S = 30.0

_OPTIONS = (
    click.option(
        "--port",
        type=Whole(0, 65535),
        default=PORT,
        show_default=True,
        help="Port of the page; 0 is any free one.",
    ),
    click.option(
        "--host", default="127.0.0.1", show_default=True, help="Address on which it listens."
    ),
    click.option(
        "--public-origin",
        metavar="URL",
        multiple=True,
        help="Address of a proxy in front of the page, such as https://lab.example.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the address as JSON."),
)


def page_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a page: ``host``, ``port``, ``public_origin`` and ``as_json``."""
    return with_options(function, _OPTIONS)


def serve_page(
    source: Source,
    feed: Feed,
    host: str,
    port: int,
    public_origin: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Print the address of the page and serve it until Ctrl-C."""
    from knotless.web.serve import serve  # the server takes a while to load

    def ready(url: str) -> None:
        values: dict[str, Any] = {"url": url}
        if as_json:
            say_json(values)
        else:
            print_answer(Answer(Headline("page", url, "(Ctrl-C ends it)")))

    serve(source, feed, host, port, ready, tuple(map(origin_of, public_origin)))


def start_page(names: Names, port: int) -> str:
    """Start the page of a running fabric as a part of it, and return its address.

    It ends with the fabric. Raises :class:`EmulationError` with its reason if it does not start.
    """
    from knotless.base.files import write_whole
    from knotless.base.package import WORKING_DIRECTORY, python_module
    from knotless.emulation import state
    from knotless.emulation.runtime import Runtime, machine_lock

    options = ("--port", str(port))
    with machine_lock():
        runtime = Runtime(names, state.require_running(names))
        child = runtime.spawn(
            "web",
            python_module("knotless", "web", "--name", names.name, "--json", *options),
            directory=WORKING_DIRECTORY,
            stdout=subprocess.PIPE,
        )
    if child.stdout is None:  # pragma: no cover - it is a pipe
        raise ValueError("no pipe")
    with child.stdout as pipe:
        ready, _, _ = select.select([pipe], [], [], START_LIMIT_S)
        line = pipe.readline() if ready else b""
    try:
        url = str(json.loads(line)["url"])
    except (ValueError, KeyError, TypeError):
        runtime.stop("web")
        raise EmulationError(f"the page does not start: {runtime.last_words('web')}") from None
    write_whole(names.page_file, url, EmulationError)
    return url
