"""Text for people: names from files of others, without what a terminal might obey; lists."""

from __future__ import annotations

from collections.abc import Iterable


def printable(text: str) -> str:
    r"""Return ``text`` with each character that is not printable as an escape sequence.

    Newlines are escaped too: text from outside is shown in one line.

    Examples
    --------
    >>> print(printable("s1\x1b[2J"))
    s1\x1b[2J

    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def listed(items: Iterable[str], most: int = 8) -> str:
    """Return the first items with commas between them, and the number of further ones.

    Examples
    --------
    >>> listed(["s1", "s2", "s3"], 2)
    's1, s2 and 1 more'

    """
    texts = list(items)
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")
