"""The form of answers of commands: the answer first, then why, some figures, and what to do next.

Commands hand over values, and this module alone decides how they look. A pipe gets one fact a line:
the lines of a terminal without colour and hints, whole at any length. ``--details`` adds all that
is known, in groups.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import click

from knotless.base.counting import counted, number_text
from knotless.base.printable import printable
from knotless.shown import formatted

MAX_FIGURES = 8
"""Figures of an answer; its details have all of them."""
MAX_CHANNELS = 8
"""Channels of a cycle that a terminal shows."""
MAX_LINES = 4
"""Lines of the same kind that a terminal shows."""
MAX_ROWS = 12
"""Rows of a table that a terminal shows."""
MIN_COLUMNS = 20
_INDENT = "  "
_GAP = "  "
_UNBROKEN = "\u00a0"
"""Stands for a space at which no line breaks; text from outside has none (:func:`printable`)."""
_LARGER_UNITS = {"us": ((1e6, "s"), (1e3, "ms"))}


class Tone(Enum):
    """The meaning of an answer to its reader; the value is the colour of its word."""

    GOOD = "green"
    BAD = "red"
    OPEN = "yellow"


@dataclass(frozen=True)
class Screen:
    """The place of lines: ``columns`` of a terminal, None of a pipe; whether colours show."""

    columns: int | None = None
    colour: bool = False

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads the lines as they appear."""
        return self.columns is not None


def screen() -> Screen:
    """Return what standard output is; ``NO_COLOR`` and ``TERM=dumb`` turn colours off."""
    if not sys.stdout.isatty():
        return Screen()
    columns = max(MIN_COLUMNS, shutil.get_terminal_size().columns)
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "dumb") == "dumb"
    return Screen(columns, not plain)


@dataclass(frozen=True)
class Headline:
    """The answer in a sentence, ``SUBJECT: WORD REST``. Colour underlines the word."""

    subject: str
    word: str
    rest: str = ""
    tone: Tone = Tone.GOOD


@dataclass(frozen=True)
class Cycle:
    """Channels of which each waits for the next, and the last for the first."""

    channels: Sequence[str]
    possible: bool = False
    members: str = "channels"

    def text(self, *, whole: bool) -> str:
        """Return the cycle in a line; its middle is left out unless it is short or ``whole``."""
        names = [*self.channels, self.channels[0]]
        if not whole and len(self.channels) > MAX_CHANNELS:
            kept = MAX_CHANNELS // 2
            names[kept:-kept] = [f"({len(names) - 2 * kept} more)"]
        kind = "possible cycle" if self.possible else "cycle"
        return f"{kind} of {len(self.channels)} {self.members}: {' -> '.join(names)}"


@dataclass(frozen=True)
class Several:
    """Lines of the same kind, of which a terminal shows the first ones."""

    lines: Sequence[str]
    what: str
    most: int = MAX_LINES


@dataclass(frozen=True)
class Figure:
    """A value that engineers compare; without one (None, 0, empty) there is no figure.

    ``whole`` is what it is a part of, ``at_least`` its lower bound, ``at_most`` the largest single
    value, of which ``where`` says more; ``also`` a second value in the same unit, and its meaning.
    Times are in ``us``.
    """

    name: str
    value: float | str | None
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    where: str = ""
    whole: float | None = None
    also: tuple[float, str] = (0, "")
    decimals: int | None = None

    @property
    def text(self) -> str:
        """The value with its unit, its bound and what it is a part of."""
        if self.value is None or isinstance(self.value, str):
            return self.value or ""
        scale, unit = self.unit_for(self.value)
        text = counted(self.value / scale, unit, self.decimals)
        if self.whole is not None:
            text += f" of {number_text(self.whole / scale)}"
        if self.at_least is not None:
            text += f" (at least {number_text(self.at_least / scale)})"
        if self.at_most is not None:
            text += f", at most {number_text(self.at_most / scale)}"
        if self.where:
            text += f" {self.where}"
        amount, meaning = self.also
        return text + (f", {number_text(amount / scale)} {meaning}" if amount else "")

    def unit_for(self, value: float) -> tuple[float, str]:
        """Return the divisor and the unit in which a value is short."""
        for scale, unit in _LARGER_UNITS.get(self.unit, ()):
            if abs(value) >= scale:
                return scale, unit
        return 1, self.unit


@dataclass(frozen=True)
class Table:
    """Rows to be compared; the first column names them. The most important columns come first.

    A terminal leaves out the last columns if they do not fit. ``title`` says what the rows are.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Hint:
    """A command that one may run next, and what it does."""

    purpose: str
    words: Sequence[str]


@dataclass(frozen=True)
class Group:
    """Details of one kind: values by name, or lines."""

    title: str
    values: Mapping[str, object] | Sequence[str]


Reason = str | Cycle | Several


@dataclass(frozen=True)
class Answer:
    """The text of a command: ``remarks`` follow the figures, ``details`` are for ``--details``."""

    headline: Headline
    why: Sequence[Reason] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    remarks: Sequence[Reason] = ()
    hints: Sequence[Hint] = ()
    details: Sequence[Group] = ()


def print_answer(answer: Answer, *, details: bool = False) -> None:
    """Print an answer to standard output."""
    on = screen()
    for line in answer_lines(answer, on, details=details):
        click.echo(line, color=on.colour)


def answer_lines(answer: Answer, on: Screen, *, details: bool = False) -> Iterator[str]:
    """Yield the lines of an answer as they appear on a screen."""
    whole = details or not on.is_terminal
    yield from _headline(answer.headline, on)
    yield from _reasons(answer.why, on, whole=whole)
    shown = [figure for figure in answer.figures if figure.value][:MAX_FIGURES]
    width = max((len(figure.name) for figure in shown), default=0)
    for figure in shown:
        yield from _broken(f"{figure.name:{width}}{_GAP}{figure.text}", on, width + len(_GAP))
    for table in answer.tables:
        yield from _table(table, on, whole=whole)
    yield from _reasons(answer.remarks, on, whole=whole)
    for group in answer.details if details else ():
        yield from _group(group, on)
    if on.is_terminal:
        for hint in answer.hints:
            # A command is not broken, so that it can be copied.
            yield printable(f"{_INDENT}{hint.purpose}: {shlex.join(hint.words)}")


def written(**files: str | None) -> Iterator[str]:
    """Yield where each of the files is that was written, by what it is; None: it was not."""
    for what, file in files.items():
        if file is not None:
            yield f"{what}: {file}"


def _headline(headline: Headline, on: Screen) -> Iterator[str]:
    word = headline.word.replace(" ", _UNBROKEN)
    subject, rest = printable(headline.subject), printable(headline.rest)
    shown = click.style(headline.word, fg=headline.tone.value, bold=True)
    space = "" if rest.startswith(",") else " "
    for line in _wrapped(f"{subject}: {word}{space}{rest}".rstrip(), on):
        begin, middle, end = line.rpartition(word) if word in line else (line, "", "")
        yield f"{begin}{(shown if on.colour else headline.word) if middle else ''}{end}"


def _reasons(reasons: Sequence[Reason], on: Screen, *, whole: bool) -> Iterator[str]:
    for reason in reasons:
        if isinstance(reason, Several):
            most = len(reason.lines) if whole else reason.most
            for line in reason.lines[:most]:
                yield from _broken(line, on)
            if more := len(reason.lines[most:]):
                yield from _broken(f"and {more} more {reason.what} (--details)", on)
        else:
            text = reason.text(whole=whole) if isinstance(reason, Cycle) else reason
            yield from _broken(text, on)


def _table(table: Table, on: Screen, *, whole: bool) -> Iterator[str]:
    """Yield headings and rows, numbers to the right, with the columns that fit."""
    rows = table.rows if whole else table.rows[:MAX_ROWS]
    cells = [[printable(_cell(value)) for value in row] for row in rows]
    right = [
        all(isinstance(row[column], int | float | None) for row in rows)
        for column in range(len(table.headings))
    ]
    widths = [
        max(len(row[column]) for row in [[*map(printable, table.headings)], *cells])
        for column in range(len(table.headings))
    ]
    count = len(widths)
    room = None if whole or on.columns is None else on.columns - len(_INDENT)
    while room is not None and count > 2 and sum(widths[:count]) + len(_GAP) * (count - 1) > room:
        count -= 1
    if table.title:
        yield from _broken(table.title, on)
    for row in [[*map(printable, table.headings)], *cells]:
        aligned = (
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row[:count], widths, right, strict=False)
        )
        yield f"{_INDENT}{_GAP.join(aligned)}".rstrip()
    if more := len(table.rows) - len(rows):
        yield from _broken(f"and {more} more rows (--details)", on)
    if left_out := len(widths) - count:
        yield from _broken(f"{left_out} more columns need a wider terminal, or --details", on)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if is_count else formatted(value)


def _group(group: Group, on: Screen) -> Iterator[str]:
    """Yield the title and, indented, what belongs to it."""
    if not group.values:
        return
    yield from _wrapped(f"{printable(group.title)}:", on)
    lines = group.values
    if isinstance(lines, Mapping):
        names = [name.replace("_", " ") for name in lines]
        width = max(map(len, names))
        shown = zip(names, lines.values(), strict=True)
        lines = [f"{name:{width}}{_GAP}{formatted(value)}" for name, value in shown]
    for line in lines:
        yield from _broken(line, on)


def _broken(text: str, on: Screen, hanging: int = len(_INDENT)) -> Iterator[str]:
    """Yield an indented line; a terminal breaks it between words, and indents what follows."""
    return _wrapped(printable(text), on, _INDENT, hanging)


def _wrapped(text: str, on: Screen, indent: str = "", hanging: int = 2) -> Iterator[str]:
    if on.columns is None:
        yield f"{indent}{text}"
        return
    yield from textwrap.wrap(
        text,
        on.columns,
        initial_indent=indent,
        subsequent_indent=indent + " " * min(hanging, on.columns // 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
