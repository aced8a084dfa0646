"""Parts of pages that a command writes: between two comments, on lines of their own.

A page holds ``<!-- figures: NAME -->`` and ``<!-- end of figures -->``; what is between them is
replaced by the lines of NAME. All that people write stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

from knotless.base.errors import KnotlessError
from knotless.results import markdown

BEGIN, END = "<!-- figures: {} -->", "<!-- end of figures -->"
PART = re.compile(r"<!-- figures: ([a-z0-9-]+) -->\n.*?<!-- end of figures -->", re.DOTALL)

Lines = Callable[[], Iterable[str]]


class PartError(KnotlessError):
    """A page that asks for figures that there are not."""


def names(text: str) -> list[str]:
    """Return the names of the parts of a page, in its order."""
    return PART.findall(text)


def rewritten(text: str, parts: Mapping[str, Lines], others: Collection[str] = ()) -> str:
    """Return a page with all its parts written but ``others``, which another command writes.

    Raises PartError for an unknown name.
    """

    def replaced(part: re.Match[str]) -> str:
        if part[1] in others:
            return part[0]
        if part[1] not in parts:
            raise PartError(f"figures {part[1]!r}: there are {', '.join(parts)}")
        return f"{BEGIN.format(part[1])}\n\n{markdown.page(parts[part[1]]())}\n{END}"

    return PART.sub(replaced, text)
