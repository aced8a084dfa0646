"""Lists of names that users write with commas."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.base.errors import KnotlessError

LONGEST_QUOTE = 40
"""Largest number of characters of user input in an error message."""


def names_in(text: Sequence[str] | str | None, default: Sequence[str]) -> tuple[str, ...]:
    """Return the names in ``text``, separated by commas, without duplicates; or the default."""
    if text is None or text == ():
        return tuple(default)
    several = [text] if isinstance(text, str) else text
    return tuple(dict.fromkeys(part.strip() for one in several for part in one.split(",")))


def choice(
    text: Sequence[str] | str | None,
    names: Sequence[str],
    option: str,
    default: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Return the chosen ones of ``names``, in its order; by default ``default`` (None: all).

    Raises KnotlessError for an unknown name.
    """
    chosen = names_in(text, names if default is None else default)
    for name in chosen:
        if name not in names:
            raise KnotlessError(f"{option}: {name[:LONGEST_QUOTE]!r} is none of {', '.join(names)}")
    return tuple(name for name in names if name in chosen)
