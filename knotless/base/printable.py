"""Text from files of others, for a terminal: characters that it might obey are escaped."""

from __future__ import annotations


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
