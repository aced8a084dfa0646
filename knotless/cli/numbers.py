"""The types of all options that are numbers: within limits, with or without a unit."""

from __future__ import annotations

from typing import Any

import click

from knotless.base.errors import KnotlessError
from knotless.base.quantities import PLAIN, Unit, number


class Number(click.FloatRange):
    """A number in the bare unit of ``unit``; the other arguments are those of click's type."""

    def __init__(
        self,
        min: float | None = None,
        max: float | None = None,
        unit: Unit = PLAIN,
        *,
        min_open: bool = False,
    ) -> None:
        super().__init__(min, max, min_open)
        self.unit = unit

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return what stands for a value in the help; click gives a context since 8.2."""
        del param, ctx
        return self.unit.placeholder

    def _describe_range(self) -> str:
        return limits(self, self.unit)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; fails as click's own types do."""
        try:
            converted = number(value, self.unit) if isinstance(value, str) else float(value)
        except KnotlessError as error:
            self.fail(str(error), param, ctx)
        if beyond := limit_passed(self, converted, self.unit):
            self.fail(f"{value} is not {beyond}", param, ctx)
        return converted


class Whole(Number):
    """A whole number in the bare unit of ``unit``; the other arguments are those of click's."""

    name = "integer range"

    def __init__(
        self,
        min: int | None = None,
        max: int | None = None,
        unit: Unit = PLAIN,
    ) -> None:
        super().__init__(min, max, unit)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; fails as click's own types do."""
        try:
            exact = _digits(value)
            converted = number(str(value), self.unit) if exact is None else exact
        except KnotlessError as error:
            self.fail(str(error).replace("is no number", "is no whole number"), param, ctx)
        if converted != int(converted):
            self.fail(f"{value} is no whole number", param, ctx)
        if beyond := limit_passed(self, converted, self.unit):
            self.fail(f"{value} is not {beyond}", param, ctx)
        return int(converted)


def _digits(value: object) -> int | None:
    """Return a whole number that is written in digits alone, exact however long it is."""
    text = str(value).strip()
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 100 else None


def limit_passed(limited: click.FloatRange, value: float, unit: Unit) -> str:
    """Return the limit of a type that a number is beyond, as ``at most 8``; empty if within."""
    least, most = limited.min, limited.max
    bare = f" {unit.bare}" if unit.bare else ""
    if least is not None and (value < least or (limited.min_open and value == least)):
        return f"{'above' if limited.min_open else 'at least'} {least:,.12g}{bare}"
    return "" if most is None or value <= most else f"at most {most:,.12g}{bare}"


def limits(limited: click.FloatRange, unit: Unit) -> str:
    """Return the limits of a type, as ``from 0 to 65,535``; empty if there are none."""
    least, most = (None if each is None else f"{each:,.12g}" for each in (limited.min, limited.max))
    bare = f" {unit.bare}" if unit.bare else ""
    if least is not None and limited.min_open:
        return f"above {least}" + ("" if most is None else f" and at most {most}") + bare
    if least is None and most is None:
        return ""
    if least is None or most is None:
        return (f"at least {least}" if most is None else f"at most {most}") + bare
    return f"from {least} to {most}{bare}"
