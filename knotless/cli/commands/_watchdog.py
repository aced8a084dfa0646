"""The options of the watchdog of switches, shared by simulations and running fabrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from knotless.base.errors import KnotlessError
from knotless.base.finite_range import FiniteRange

Command = TypeVar("Command", bound=Callable[..., Any])

ACTIONS = ("drop", "drop-egress", "forward")
LONGEST_US = 1e9

_OPTIONS = [
    click.option(
        "--watchdog",
        type=FiniteRange(min=1, max=LONGEST_US),
        metavar="US",
        help="Detect a storm when frames wait for a paused queue of a switch for this long.",
    ),
    click.option(
        "--watchdog-restore",
        type=FiniteRange(min=0, max=LONGEST_US),
        metavar="US",
        help="The storm is over when the queue was not paused for this long [default: twice"
        " --watchdog].",
    ),
    click.option(
        "--watchdog-action",
        type=click.Choice(ACTIONS),
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

    changed = cast(Command, with_watchdog)
    for option in reversed(_OPTIONS):
        changed = option(changed)
    return changed
