"""Suggestions in place of an unknown word."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MAX_CHARACTERS = 50
"""Longer words resemble nothing, and take long to compare."""


def is_not_one_of(choices: Iterable[object]) -> str:
    """Return what an error says of a word, after the word itself.

    Examples
    --------
    >>> is_not_one_of(["ecmp", "spray"])
    "is not one of 'ecmp', 'spray'"

    """
    return f"is not one of {', '.join(repr(str(each)) for each in choices)}"


def suggestion(word: str, choices: Iterable[str], otherwise: str = "") -> str:
    """Return which of the ``choices`` may be meant.

    If none is similar, it is ``otherwise``, or names them all.

    Examples
    --------
    >>> suggestion("updwn", ["updown", "dor"]), suggestion("x", ["updown", "dor"])
    ("did you mean 'updown'?", 'known are updown, dor')

    """
    names = list(choices)
    if close := get_close_matches(word.lower()[:_MAX_CHARACTERS], names, n=1):
        return f"did you mean {str(close[0])!r}?"
    return otherwise or f"known are {', '.join(names)}"
