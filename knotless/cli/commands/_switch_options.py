"""Options of links and switches that simulations and running fabrics share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from knotless._core.simulator import BROADCAST_BURST_BYTES, BROADCAST_SHARE, CREDIT_UNIT_BYTES
from knotless.base.broadcasts import LEAST_BURST_BYTES, MOST_BURST_BYTES
from knotless.base.errors import KnotlessError
from knotless.base.quantities import BYTES, MBPS, MICROSECONDS, SHARE
from knotless.cli.commands._verdict_options import read_switch_file, switch_file_option
from knotless.cli.numbers import Number, Whole
from knotless.cli.options import with_options
from knotless.simulation.settings import (
    MAX_CREDIT_UNIT_BYTES,
    MAX_IN_A_ROW,
    MAX_LINE_ERRORS,
    MAX_RETRY,
)
from knotless.topologies.validate import MAX_DELAY_US, MAX_RATE_MBPS

RATE = Number(0, MAX_RATE_MBPS, MBPS, min_open=True)
DELAY = Number(0, MAX_DELAY_US, MICROSECONDS)
LINE_OPTIONS = [
    click.option(
        "--line-errors",
        type=Number(0, MAX_LINE_ERRORS),
        default=0.0,
        metavar="RATE",
        help="Bit error rate of every line; frames with errors are lost, or repeated with --retry.",
    ),
    click.option(
        "--errors-in-a-row",
        type=Whole(1, MAX_IN_A_ROW),
        default=1,
        metavar="FRAMES",
        help="How many frames in a row have errors on average [default: each by chance].",
    ),
    click.option(
        "--retry",
        type=Whole(0, MAX_RETRY),
        metavar="REPLAYS",
        help="Links repeat frames that lines lose or corrupt, and give up after so many replays"
        " without progress; 0: never.",
    ),
]
"""Bit errors of lines, and links that repeat frames."""
_SWITCH = "Shared buffers, lossless priorities, schedulers and ECN of switches."


def _settings_for_model(
    context: click.Context, parameter: click.Parameter, path: str | None
) -> dict[str, Any] | None:
    """Return the settings in a file as the emulator reads them."""
    file = read_switch_file(context, parameter, path)
    return None if file is None else file.for_model()


switch_option = switch_file_option(_SWITCH)
"""Adds ``--switch``: the command gets a SwitchFile as ``switch_settings``, or None."""
emulated_switch_option = switch_file_option(_SWITCH, _settings_for_model)
"""Adds ``--switch``: the command gets the settings as the emulator reads them, or None."""


class _CreditUnit(click.ParamType):
    """Bytes of a unit: those of ``blocks``, as InfiniBand has them, or of ``cells:N``."""

    name = "unit"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the bytes of a unit."""
        text = str(value).lower()
        if text == "blocks":
            return CREDIT_UNIT_BYTES
        head, _, number = text.partition(":")
        digits = number if number.isascii() and number.isdecimal() and len(number) < 9 else "0"
        if head == "cells" and 1 <= int(digits) <= MAX_CREDIT_UNIT_BYTES:
            return int(digits)
        return self.fail(
            f"{str(value)[:40]!r} is not a unit of credit: write blocks (of {CREDIT_UNIT_BYTES}"
            f" bytes), or cells:N for cells of N bytes, 1 to {MAX_CREDIT_UNIT_BYTES}",
            param,
            ctx,
        )


credit_bytes_option = click.option(
    "--credit-bytes",
    "credit",
    type=Whole(1, 2**40, unit=BYTES),
    help="Under credits: ingress buffer of each virtual channel [default: XOFF and headroom].",
)
credit_unit_option = click.option(
    "--credit-unit",
    type=_CreditUnit(),
    metavar="UNIT",
    help="What credits count: blocks of 64 bytes, or cells:N of N bytes [default: blocks; with"
    " bubbles a longest frame].",
)

Command = TypeVar("Command", bound=Callable[..., Any])


def credit_options(command: Command) -> Command:
    """Add the options to a command that starts a fabric, which receives them as ``buffer``.

    That is a mapping with the keys ``credit_bytes`` and ``credit_unit_bytes`` of those that were
    given, or None.
    """

    @wraps(command)
    def with_credits(*args: Any, credit: int | None, credit_unit: int | None, **given: Any) -> Any:
        sizes = {"credit_bytes": credit, "credit_unit_bytes": credit_unit}
        buffer = {key: size for key, size in sizes.items() if size is not None}
        return command(*args, buffer=buffer or None, **given)

    return cast(Command, credit_bytes_option(credit_unit_option(with_credits)))


_BROADCASTS = [
    click.option(
        "--broadcast-limit",
        "broadcast_share",
        type=Number(min=0, max=1, unit=SHARE),
        help="Share of its line that a host may fill with broadcasts and frames to undeclared"
        f" multicast groups; its switch drops the rest [default: {BROADCAST_SHARE}]. 0: no limit,"
        " only a line that names the host.",
    ),
    click.option(
        "--broadcast-burst",
        type=Whole(LEAST_BURST_BYTES, MOST_BURST_BYTES, unit=BYTES),
        help=f"Bytes of them that may come at once [default: {BROADCAST_BURST_BYTES}].",
    ),
]


def broadcast_options(command: Command) -> Command:
    """Add the options to a command, which receives them as its parameter ``broadcast_limit``.

    That is a mapping with those of the keys ``share`` and ``burst_bytes`` that are given.
    """

    @wraps(command)
    def with_limit(
        *args: Any, broadcast_share: float | None, broadcast_burst: int | None, **given: Any
    ) -> Any:
        limit = {"share": broadcast_share, "burst_bytes": broadcast_burst}
        limit = {key: value for key, value in limit.items() if value is not None}
        return command(*args, broadcast_limit=limit or None, **given)

    return with_options(cast(Command, with_limit), _BROADCASTS)


ACTIONS = ("drop", "drop-egress", "forward")
LONGEST_US = 1e9

_WATCHDOG = [
    click.option(
        "--watchdog",
        type=Number(min=1, max=LONGEST_US, unit=MICROSECONDS),
        help="Detect a storm when frames wait for a paused queue of a switch for this long.",
    ),
    click.option(
        "--watchdog-restore",
        type=Number(min=0, max=LONGEST_US, unit=MICROSECONDS),
        help="The storm is over when the queue was not paused for this long [default: twice"
        " --watchdog].",
    ),
    click.option(
        "--watchdog-action",
        type=click.Choice(ACTIONS, case_sensitive=False),
        help="In a storm, drop the frames of the queue and what arrives from its port [default],"
        " only the frames of the queue, or ignore its pauses.",
    ),
]


def watchdog_options(command: Command) -> Command:
    """Add the options to a command, which receives them as its parameter ``watchdog``.

    That is a mapping with the keys ``watchdog_us``, ``watchdog_restore_us`` and
    ``watchdog_action``, or None without a watchdog.
    """

    @wraps(command)
    def with_watchdog(
        *args: Any,
        watchdog: float | None,
        watchdog_restore: float | None,
        watchdog_action: str | None,
        **given: Any,
    ) -> Any:
        settings = None
        if watchdog is not None:
            settings = {
                "watchdog_us": watchdog,
                "watchdog_restore_us": 2 * watchdog
                if watchdog_restore is None
                else watchdog_restore,
                "watchdog_action": watchdog_action or ACTIONS[0],
            }
        elif watchdog_restore is not None or watchdog_action is not None:
            raise KnotlessError("--watchdog-restore and --watchdog-action need --watchdog US")
        return command(*args, watchdog=settings, **given)

    return with_options(cast(Command, with_watchdog), _WATCHDOG)
