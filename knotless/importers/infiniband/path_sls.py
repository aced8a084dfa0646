"""Service levels of InfiniBand paths.

Lines ``<source GUID> <destination LID> <SL>``, where the GUID is that of the port or of the node,
or the path records that ``saquery -p`` prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import FileKind

_LINE = re.compile(r"0x([0-9A-Fa-f]{1,16})\s+(\d{1,5})\s+(\d{1,2})$")
_RECORD = "PathRecord dump:"
_MARK = re.compile(rf"{_RECORD}|^[ \t]*(?:{_LINE.pattern[:-1]})[ \t\r]*$", re.MULTILINE)
_FIELD = re.compile(r"(dlid|slid|sl)\.{2,}(0x[0-9A-Fa-f]{1,8}|\d{1,8})$")


@dataclass
class PathSls:
    """The SL by (source GUID, destination LID), and by (source LID, destination LID)."""

    by_guid: dict[tuple[int, int], int] = field(default_factory=dict)
    by_lid: dict[tuple[int, int], int] = field(default_factory=dict)


def read_path_sls(text: str) -> PathSls:
    """Return the service levels in ``text``; raises RuleError if a line cannot be read."""
    sls = PathSls()
    if _RECORD in text[:20_000]:
        for number, record in _records(text):
            if {"slid", "dlid", "sl"} - record.keys():
                raise RuleError(f"line {number}: a path record without slid, dlid or sl")
            pair = (record["slid"], record["dlid"])
            _keep(sls.by_lid, pair, record["sl"], number)
        return sls
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        row = _LINE.match(line)
        if row is None:
            raise RuleError(f"line {number}: not '<GUID> <LID> <SL>': {line[:60]!r}")
        _keep(sls.by_guid, (int(row[1], 16), int(row[2])), int(row[3]), number)
    return sls


def _keep(sls: dict[tuple[int, int], int], pair: tuple[int, int], sl: int, line: int) -> None:
    if sl > 15:
        raise RuleError(f"line {line}: SL {sl}, at most 15 exists")
    if sls.setdefault(pair, sl) != sl:
        raise RuleError(f"line {line}: SL {sl} and SL {sls[pair]} for the same path")


def _records(text: str) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield each path record with the number of its first line."""
    record: dict[str, int] = {}
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line == _RECORD:
            if first:
                yield first, record
            record, first = {}, number
        elif value := _FIELD.match(line):
            record[value[1]] = int(value[2], 0) if value[2][:2] == "0x" else int(value[2])
    if first:
        yield first, record


KIND = FileKind(
    "InfiniBand path SLs", "infiniband", _MARK, lambda content: read_path_sls(content.text)
)
