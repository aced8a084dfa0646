"""Lines in which the files of two snapshots differ, and the smallest set of them that matters.

References
----------
Zeller and Hildebrandt: Simplifying and isolating failure-inducing input, IEEE Transactions on
Software Engineering 28(2), 2002: the algorithm ddmin.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from os.path import commonprefix
from typing import NamedTuple

_MOST_COMPARED = 4000
"""Lines of a file, without equal ones at its beginning and end, that are compared one by one."""
_SHOWN = 60
"""Characters of a line that are shown."""
_CONTEXT = 30
"""Bytes before a difference that are shown."""


class ChangedLines(NamedTuple):
    """Neighbouring lines of a file that were replaced.

    ``line`` is the number of the first of them, from 1. ``before`` and ``after`` are the lines with
    their ends; ``None`` for ``before``: the file is new, for ``after``: it is gone.
    """

    file: str
    line: int
    before: tuple[bytes, ...] | None
    after: tuple[bytes, ...] | None

    @property
    def text(self) -> str:
        """The place, and what was there and is there now, as text."""
        if self.before is None:
            return f"{self.file}: is new"
        if self.after is None:
            return f"{self.file}: is gone"
        start = 0
        if len(self.before) == len(self.after) == 1:
            start = max(len(commonprefix([self.before[0], self.after[0]])) - _CONTEXT, 0)
        shown = f"{_shown(self.before, start)} -> {_shown(self.after, start)}"
        return f"{self.file}:{self.line}: {shown}"


def _shown(lines: Sequence[bytes], start: int) -> str:
    """Return the first line, from a place on, as text of a limited length."""
    if not lines:
        return "nothing"
    text = lines[0][start:].decode(errors="replace").strip()
    cut = text[:_SHOWN] + (".." if len(text) > _SHOWN else "")
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return ".." * (start > 0) + cut + more


def changed_lines(
    before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> Iterator[ChangedLines]:
    r"""Yield the lines in which files differ, by name and place.

    Examples
    --------
    >>> [change.text for change in changed_lines({"a": b"1\n2\n"}, {"a": b"1\n3\n"})]
    ['a:2: 2 -> 3']

    """
    for file in sorted({*before, *after}):
        old, new = before.get(file), after.get(file)
        if old == new:
            continue
        if old is None or new is None:
            yield ChangedLines(file, 1, _lines(old), _lines(new))
        else:
            yield from _between(file, old.splitlines(keepends=True), new.splitlines(keepends=True))


def _lines(data: bytes | None) -> tuple[bytes, ...] | None:
    return None if data is None else tuple(data.splitlines(keepends=True))


def _between(file: str, old: list[bytes], new: list[bytes]) -> Iterator[ChangedLines]:
    start = len(commonprefix([old, new]))
    end = len(commonprefix([old[start:][::-1], new[start:][::-1]]))
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(old), len(new)) > _MOST_COMPARED:
        yield ChangedLines(file, start + 1, tuple(old), tuple(new))
        return
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield ChangedLines(file, start + a + 1, tuple(old[a:b]), tuple(new[c:d]))


def with_lines(
    before: Mapping[str, bytes], changes: Iterable[ChangedLines]
) -> dict[str, bytes | None]:
    """Return the files that some changes of :func:`changed_lines` make; None: it is gone."""
    of_file: dict[str, list[ChangedLines]] = {}
    for change in changes:
        of_file.setdefault(change.file, []).append(change)
    files: dict[str, bytes | None] = {}
    for file, all_of_file in of_file.items():
        lines = before.get(file, b"").splitlines(keepends=True)
        gone = False
        for change in sorted(all_of_file, key=lambda one: one.line, reverse=True):
            gone = change.after is None
            place = change.line - 1
            lines[place : place + len(change.before or ())] = change.after or ()
        files[file] = None if gone else b"".join(lines)
    return files


def smallest_set(
    changes: Sequence[ChangedLines],
    matters: Callable[[Sequence[ChangedLines]], bool],
    most_tries: int,
) -> list[ChangedLines]:
    """Return few changes that together matter as all do (ddmin), found in at most so many tries.

    If tries are enough, none of them can be left out: it need not be the smallest set of all.
    """
    left, parts, tries = list(changes), 2, 0
    while len(left) > 1 and tries < most_tries:
        size = -(-len(left) // parts)
        pieces = [left[place : place + size] for place in range(0, len(left), size)]
        others = [[one for one in left if one not in piece] for piece in pieces]
        candidates = [*pieces, *(others if len(pieces) > 2 else ())]
        for number, candidate in enumerate(candidates):
            if tries >= most_tries:
                return left
            tries += 1
            if matters(candidate):
                left = candidate
                parts = 2 if number < len(pieces) else max(parts - 1, 2)
                break
        else:
            if parts >= len(left):
                break
            parts = min(2 * parts, len(left))
    return left
