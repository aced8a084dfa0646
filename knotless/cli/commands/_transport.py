"""The option of transports: how hosts send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from knotless.simulation.transport import KINDS, Transport, transport_of

Command = TypeVar("Command", bound=Callable[..., Any])


def _read(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> Transport | None:
    return transport_of(texts)


def transport_option(command: Command) -> Command:
    """Add ``--transport``: the command gets a Transport as ``transport``, or None."""
    return click.option(
        "--transport",
        multiple=True,
        callback=_read,
        metavar="NAME[,KEY=VALUE...]",
        help=f"How hosts send: {', '.join(KINDS)}, with parameters such as dcqcn,timer_us=1500"
        " [default: as fast as the line permits].",
    )(command)
