"""What the options of several experiments have in common: lists, numbers within limits, delays."""

from __future__ import annotations

from collections.abc import Sequence

import click

from experiments.experiment import ExperimentError

LONGEST_QUOTE = 40
"""Of what a user gave, so many characters stand in an error."""


def within(value: float, limits: tuple[float, float], option: str, unit: str) -> float:
    """Return a number that lies within its limits; else raise ExperimentError."""
    if not limits[0] <= value <= limits[1]:
        raise ExperimentError(
            f"{option}: {value:g} is not within {limits[0]:g}..{limits[1]:g} {unit}"
        )
    return value


def listed(text: Sequence[str] | str | None, usual: Sequence[str]) -> tuple[str, ...]:
    """Return what the user named, commas between and each once, else the usual."""
    if text is None or text == ():
        return tuple(usual)
    several = [text] if isinstance(text, str) else text
    return tuple(dict.fromkeys(part.strip() for one in several for part in one.split(",")))


def choice(
    text: Sequence[str] | str | None,
    known: Sequence[str],
    option: str,
    usual: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Return what the user chose of ``known``, in that order, else the usual (None: all).

    Raises ExperimentError for a name that is not known.
    """
    chosen = listed(text, known if usual is None else usual)
    for name in chosen:
        if name not in known:
            raise ExperimentError(
                f"{option}: {name[:LONGEST_QUOTE]!r} is none of {', '.join(known)}"
            )
    return tuple(name for name in known if name in chosen)


def numbers(
    text: str | None, usual: Sequence[int], limits: tuple[int, int], option: str
) -> list[int]:
    """Read whole numbers with commas between, within limits; raises ExperimentError."""
    found = []
    for word in listed(text, [str(number) for number in usual]):
        if not (word.isascii() and word.isdigit() and limits[0] <= int(word[:9]) <= limits[1]):
            raise ExperimentError(
                f"{option}: {word[:20]!r} is no whole number from {limits[0]} to {limits[1]}"
            )
        found.append(int(word))
    return found


def list_option(name: str, text: str) -> click.Option:
    """Return an option that takes a list with commas between."""
    return click.Option([name], metavar="LIST", help=text)


def delay_option(usual_us: float) -> click.Option:
    """Return the option for the delay of every link."""
    return click.Option(
        ["--delay"], type=float, metavar="US", help=f"Delay of every link (default: {usual_us:g})."
    )
