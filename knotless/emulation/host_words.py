"""Names of hosts among the words of a program, in place of which it gets their addresses.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection


def host_in(word: str, hosts: Collection[str]) -> str | None:
    """Return the host that a word of a program names, or None.

    A number is a number: a host whose name is a number is meant by it in quotes.

    Examples
    --------
    >>> [host_in(word, ["h2", "2"]) for word in ("h2", "2", "'2'", "-c")]
    ['h2', None, '2', None]

    """
    if word.isdigit():
        return None
    inner = word[1:-1]
    is_quoted = len(word) > 2 and word[0] == word[-1] and word[0] in "'\""
    name = inner if is_quoted and inner.isdigit() else word
    return name if name in hosts else None
