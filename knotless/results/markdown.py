"""Markdown pages with lines of at most 100 columns."""

from __future__ import annotations

import re
from collections.abc import Iterable

WIDTH = 100
WORD = re.compile(r"(?:`[^`]+`|\[[^\]]*\]\([^)\s]*\)|\S)+")
"""A word: code between backticks and links are not divided."""
FIXED = ("|", "#", "    ")
"""The first characters of tables, headings and code, whose lines stay as they are."""


def wrapped(line: str) -> list[str]:
    """Return a paragraph or list item as lines of at most ``WIDTH`` columns."""
    if len(line) <= WIDTH or line.startswith(FIXED) or "\n" in line:
        return [line]
    indent = "  " if line.startswith("- ") else ""
    lines: list[str] = []
    current = ""
    for word in WORD.findall(line):
        if current and len(current) + 1 + len(word) > WIDTH:
            lines.append(current)
            current = indent + word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current]


def page(lines: Iterable[str]) -> str:
    """Return the text of a page whose paragraphs and list items are one line each."""
    return "\n".join(short for line in lines for short in wrapped(line)) + "\n"
