"""The options of the limit of broadcasts, shared by simulations and running fabrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from knotless._core.simulator import BROADCAST_BURST_BYTES, BROADCAST_SHARE
from knotless.base.broadcasts import LEAST_BURST_BYTES, MOST_BURST_BYTES
from knotless.base.finite_range import FiniteRange

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = [
    click.option(
        "--broadcast-limit",
        "broadcast_share",
        type=FiniteRange(min=0, max=1),
        metavar="SHARE",
        help="Share of its line that a host may fill with broadcasts and frames to undeclared"
        f" multicast groups; its switch drops the rest [default: {BROADCAST_SHARE}]. 0: no limit,"
        " only a line that names the host.",
    ),
    click.option(
        "--broadcast-burst",
        type=click.IntRange(LEAST_BURST_BYTES, MOST_BURST_BYTES),
        metavar="BYTES",
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

    changed = cast(Command, with_limit)
    for option in reversed(_OPTIONS):
        changed = option(changed)
    return changed
