"""Figures on pages that no command has written, found by their form.

Looked at are prose and tables outside code, backticks, links, and the parts that ``knotless
reproduction`` or ``python -m bench.pages`` writes. A figure is a number with a unit of time, data,
rate or share, or a time in words. A table of figures is known by its first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

WRITTEN = re.compile(r"<!-- figures: [a-z0-9-]+ -->\n.*?<!-- end of figures -->", re.DOTALL)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
UNITS = (
    r"%|[nmu]?s|seconds?|minutes?|hours?|bytes|[GMk]B|[GMK]iB|[GMK]bit/s|M|times|frames/s|hops/s"
)
NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty"
WORDS = (
    r"(?:a )?quarter of an hour|half an? (?:hour|minute|second)"
    rf"|(?:{NUMBERS}) (?:seconds?|minutes?|hours?)"
)
FIGURE = re.compile(rf"(?<![\w.,:-])(?:\d[\d,]*(?:\.\d+)?\s?(?:{UNITS})(?![\w/])|(?:{WORDS})\b)")
CELL = re.compile(r"\**[<>~]?[+-]?\d[\d,.]*(?:\s?(?:%|us|ms|s|MB|GB|M))?\**(?: \(\d[\d.,]*\))?")


@dataclass
class Typed:
    """The figures in the prose of a page, and the first lines of its tables of figures."""

    figures: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)


def _tables(lines: list[str]) -> Iterator[list[str]]:
    table: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("|"):
            table.append(line)
        elif table:
            yield table
            table = []


def typed(page: Path) -> Typed:
    """Return the figures of a page that somebody typed."""
    text = FENCED.sub("", WRITTEN.sub("", page.read_text()))
    lines = [line for line in text.splitlines() if not line.startswith("    ")]
    result = Typed()
    prose = [line for line in lines if not line.startswith("|")]
    for table in _tables(lines):
        cells = [cell.strip() for row in table[2:] for cell in row.strip("|").split("|")[1:]]
        if sum(CELL.fullmatch(cell) is not None for cell in cells) >= 3:
            result.tables.add(" ".join(table[0].split()))
        else:
            prose += table
    joined = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "", " ".join(prose)))
    result.figures = {" ".join(match[0].split()) for match in FIGURE.finditer(joined)}
    return result
