"""The findings of a check that stop a pipeline: those that are neither accepted nor ignored.

Both change the exit status, never the verdict.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.suggestions import is_not_one_of
from knotless.verification.verdict_findings import RULES, Finding

MAX_FILE_BYTES = 1 << 20
KINDS = {
    "unknown": "unknown",
    "loss": "lossless-loss",
    "delivery": "not-delivered",
    "failures": "deadlock-after-failure",
}
"""What ``--ignore`` names, and the rule of its findings; a cycle is never ignored."""
_KEYS = {"finding", "reason", "until"}


@dataclass(frozen=True)
class Accepted:
    """A finding that is known and accepted, until the end of a day (UTC)."""

    finding: str
    reason: str
    until: datetime.date


@dataclass(frozen=True)
class Gate:
    """The ``findings`` of a check, but notes, and which of them do not count.

    ``accepted`` are those of the file by their identifiers, ``ignored`` words of :data:`KINDS`.
    """

    findings: Sequence[Finding]
    accepted: dict[str, Accepted] = field(default_factory=dict)
    ignored: Sequence[str] = ()

    @property
    def counted(self) -> list[Finding]:
        """The findings that stop a pipeline."""
        rules = {KINDS[word] for word in self.ignored}
        return [
            one
            for one in self.findings
            if one.rule not in rules and one.identifier not in self.accepted
        ]

    @property
    def text(self) -> str:
        """The end of the first line, which says what does not count; empty if all counts."""
        by_name = sum(one.identifier in self.accepted for one in self.findings)
        parts = [f"{counted(by_name, 'findings')} accepted"] if by_name else []
        rules = {one.rule for one in self.findings}
        parts += [f"{word} ignored" for word in self.ignored if KINDS[word] in rules]
        return "".join(f", {part}" for part in parts)

    @property
    def remarks(self) -> Iterator[str]:
        """Yield why findings are accepted, and which accepted ones are not found any more."""
        present = {one.identifier for one in self.findings}
        for entry in self.accepted.values():
            if entry.finding in present:
                yield f"accepted until {entry.until}: {entry.finding}: {entry.reason}"
            else:
                yield f"accepted, and not found any more: {entry.finding}"

    def as_json(self) -> list[dict[str, Any]]:
        """Return the findings as values for :func:`json.dumps`."""
        stops = {one.identifier for one in self.counted}
        return [
            {
                "finding": one.identifier,
                "rule": one.rule,
                "text": one.text,
                "counts": one.identifier in stops,
            }
            for one in self.findings
        ]


def gate_of(findings: Sequence[Finding], file: str | None, ignored: str | None) -> Gate:
    """Return the gate of findings, with the file of ``--accept`` and the words of ``--ignore``.

    Raises
    ------
    KnotlessError
        The file cannot be read, an entry lacks a part or its day is over, or a word is unknown.

    """
    words = [word.strip().lower() for word in (ignored or "").split(",") if word.strip()]
    for word in words:
        if word not in KINDS:
            raise KnotlessError(f"--ignore {word[:40]}: {is_not_one_of(KINDS)}")
    entries = [] if file is None else _read(file)
    problems = [one for one in findings if RULES[one.rule][0] != "note"]
    return Gate(problems, {entry.finding: entry for entry in entries}, words)


def today() -> datetime.date:
    """Return the day, UTC."""
    return datetime.datetime.now(datetime.UTC).date()


def _read(file: str) -> list[Accepted]:
    from knotless.base import yaml_file  # few checks need it

    content = yaml_file.read(Path(file), KnotlessError, MAX_FILE_BYTES)
    if not isinstance(content, list):
        raise KnotlessError(f"{file}: a list of entries with {', '.join(sorted(_KEYS))} is needed")
    entries = []
    for number, value in enumerate(content, 1):
        try:
            entries.append(_entry(value))
        except KnotlessError as error:
            raise error.within(f"{file}: entry {number}") from None
    return entries


def _entry(value: object) -> Accepted:
    if not isinstance(value, dict) or set(value) != _KEYS:
        raise KnotlessError(f"it needs {', '.join(sorted(_KEYS))}, and nothing else")
    finding, reason, until = value["finding"], value["reason"], value["until"]
    if not isinstance(finding, str) or not isinstance(reason, str) or not reason.strip():
        raise KnotlessError("finding and reason are texts")
    if isinstance(until, str):
        try:
            until = datetime.date.fromisoformat(until)
        except ValueError:
            raise KnotlessError(f"until: {until[:40]!r} is no day, such as 2027-01-31") from None
    if not isinstance(until, datetime.date) or isinstance(until, datetime.datetime):
        raise KnotlessError("until: is no day, such as 2027-01-31")
    if until < today():
        raise KnotlessError(f"{finding[:80]}: accepted until {until}, which is over")
    return Accepted(finding, reason.strip(), until)
