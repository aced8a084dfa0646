"""The options for the size of credit buffers, and for what credits count."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from knotless._core.simulator import CREDIT_UNIT_BYTES
from knotless.simulation.channels import MAX_CREDIT_UNIT_BYTES


class _CreditUnit(click.ParamType):
    """Bytes of a unit: those of ``blocks``, as InfiniBand has them, or of ``cells:N``."""

    name = "unit"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the bytes of a unit."""
        if value == "blocks":
            return CREDIT_UNIT_BYTES
        head, _, number = str(value).partition(":")
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
    type=click.IntRange(1, 2**40),
    metavar="BYTES",
    help="Under credits: ingress buffer of each virtual channel [default: XOFF and headroom].",
)
credit_unit_option = click.option(
    "--credit-unit",
    type=_CreditUnit(),
    metavar="UNIT",
    help="What credits count: blocks of 64 bytes, or cells:N of N bytes [default: blocks].",
)

Command = TypeVar("Command", bound=Callable[..., Any])


def credit_options(command: Command) -> Command:
    """Add the options to a command that starts a fabric, which receives them as ``buffer``.

    That is a mapping with the keys ``credit_bytes`` and ``credit_unit_bytes`` of those that were
    given, or None.
    """

    @wraps(command)
    def with_credits(
        *args: Any, credit_bytes: int | None, credit_unit: int | None, **given: Any
    ) -> Any:
        sizes = {"credit_bytes": credit_bytes, "credit_unit_bytes": credit_unit}
        buffer = {key: size for key, size in sizes.items() if size is not None}
        return command(*args, buffer=buffer or None, **given)

    return cast(Command, credit_bytes_option(credit_unit_option(with_credits)))
