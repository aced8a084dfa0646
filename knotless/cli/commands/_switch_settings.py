"""The option of the settings of switches: for simulations, running fabrics, and verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from knotless.base.packets import MAX_PACKET_BYTES

if TYPE_CHECKING:
    from knotless.base.switch_settings import SwitchFile

Command = TypeVar("Command", bound=Callable[..., Any])


def _read(_: click.Context, __: click.Parameter, path: str | None) -> SwitchFile | None:
    if path is None:
        return None
    from knotless.base import switch_settings  # loads pydantic

    return switch_settings.read(Path(path))


def _as_json(
    context: click.Context, parameter: click.Parameter, path: str | None
) -> dict[str, Any] | None:
    file = _read(context, parameter, path)
    return None if file is None else file.for_model()


def _option(
    callback: Callable[..., Any],
    text: str = "Shared buffers, lossless priorities, schedulers and ECN of switches.",
) -> Callable[[Command], Command]:
    return click.option(
        "--switch", "switch_settings", callback=callback, metavar="F.yaml", help=text
    )


def switch_option(command: Command) -> Command:
    """Add ``--switch``: the command gets a SwitchFile as ``switch_settings``, or None."""
    return _option(_read)(command)


def emulated_switch_option(command: Command) -> Command:
    """Add ``--switch``: the command gets the settings as the emulator reads them, or None."""
    return _option(_as_json)(command)


def judged_switch_options(command: Command) -> Command:
    """Add ``--switch`` as :func:`switch_option` does, and ``--packet-bytes``, for a verdict."""
    longest = click.option(
        "--packet-bytes",
        type=click.IntRange(1, MAX_PACKET_BYTES),
        default=1500,
        show_default=True,
        help="Longest packet (MTU): what --switch must reserve and have headroom for.",
    )
    return _option(_read, "Settings of the switches: judge their buffers too.")(longest(command))
