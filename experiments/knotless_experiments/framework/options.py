"""Helpers for options of experiments: lists, numbers with limits, delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from knotless.base.name_lists import names_in
from knotless.base.quantities import MICROSECONDS
from knotless.cli.numbers import Number
from knotless_experiments.framework.experiment import EMULATION, Common, ExperimentError

LEAST_EMULATED_DELAY_US, LONGEST_DELAY_US = 0.1, 1e6
"""Limits of link delays; below, virtual time would wait for Open vSwitch all the time."""


def within(value: float, limits: tuple[float, float], option: str, unit: str) -> float:
    """Return ``value`` if it is within the limits; else raise ExperimentError."""
    if not limits[0] <= value <= limits[1]:
        raise ExperimentError(
            f"{option}: {value:g} is not within {limits[0]:g}..{limits[1]:g} {unit}"
        )
    return value


def given(
    value: float | None, default: float, limits: tuple[float, float], option: str, unit: str
) -> float:
    """Return the given value, or the default; raises ExperimentError as :func:`within`."""
    return within(default if value is None else value, limits, option, unit)


def duration_of(common: Common, usual_s: float, limits_s: tuple[float, float]) -> float:
    """Return the measured time of a run in seconds; raises ExperimentError."""
    return given(common.duration_s, usual_s, limits_s, "--duration", "s")


def delay_of(common: Common, options: Mapping[str, Any], usual_us: float) -> float:
    """Return the delay of every link in microseconds; raises ExperimentError."""
    least_us = LEAST_EMULATED_DELAY_US if common.on == EMULATION else 0.0
    return given(options.get("delay"), usual_us, (least_us, LONGEST_DELAY_US), "--delay", "us")


def numbers(
    text: str | None, default: Sequence[int], limits: tuple[int, int], option: str
) -> list[int]:
    """Parse integers separated by commas, within limits; raises ExperimentError."""
    values = []
    for word in names_in(text, [str(number) for number in default]):
        if not (word.isascii() and word.isdigit() and limits[0] <= int(word[:9]) <= limits[1]):
            raise ExperimentError(
                f"{option}: {word[:20]!r} is not a whole number from {limits[0]} to {limits[1]}"
            )
        values.append(int(word))
    return values


def list_option(name: str, text: str) -> click.Option:
    """Return an option whose value is a comma-separated list."""
    return click.Option([name], metavar="LIST", help=text)


def delay_option(usual_us: float) -> click.Option:
    """Return the option for the delay of every link."""
    return click.Option(
        ["--delay"],
        type=Number(unit=MICROSECONDS),
        help=f"Delay of every link (default: {usual_us:g}).",
    )
