"""Pauses of a SONiC switch, as its commands print them.

``pfcwd show stats``, ``show pfc counters`` and ``show queue watermark unicast`` become tables, like
those of a database: ``PFCWD_STATS`` (by port and queue), ``PFC_COUNTERS`` (by port) and
``QUEUE_WATERMARKS`` (by port and queue).

::

          QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP
    -----------  -----------  -------------------------  ------------
    Ethernet0:3      stormed                        1/0           0/0

      Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
    ---------  ------  ------  ------  ------  ------  ------  ------  ------
    Ethernet0       0       0       0   1,204       0       0       0       0

References
----------
sonic-net/sonic-utilities, doc/Command-Reference.md.

"""

from __future__ import annotations

import re

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind
from knotless.importers.sonic.database import SonicTables

_STATS = re.compile(r"^\s*QUEUE\s+STATUS\s+STORM DETECTED", re.MULTILINE)
_HEAD = re.compile(r"^\s*Port (?P<way>Rx|Tx)\s+PFC0\s", re.MULTILINE)
_MARKS = re.compile(r"^\s*Port\s+UC0\s", re.MULTILINE)
_QUEUE = re.compile(r"\s*(\S+):(\d{1,2})\s+(stormed|operational)\b")
_RULE = re.compile(r"[-\s]+")
_PORT = re.compile(r"[A-Za-z][\w/.-]*")


def _recognises(content: Content) -> bool:
    return any(pattern.search(content.head) for pattern in (_STATS, _HEAD, _MARKS))


def _read(content: Content) -> SonicTables:
    database = SonicTables()
    part, names = "", list[str]()
    for number, line in enumerate(content.text.split("\n"), 1):
        if _STATS.match(line):
            part = "stats"
        elif head := _HEAD.match(line):
            part, names = head["way"].lower(), line.split()[2:]
        elif _MARKS.match(line):
            part, names = "marks", line.split()[1:]
        elif not line.strip():
            part = ""
        elif part == "stats" and (queue := _QUEUE.match(line)):
            rows = database.tables.setdefault("PFCWD_STATS", {})
            rows[f"{queue[1]}:{queue[2]}"] = {"status": queue[3]}
        elif part and part != "stats" and not _RULE.fullmatch(line):
            port, *values = line.split()
            if not _PORT.fullmatch(port) or len(values) != len(names):
                raise RuleError(f"line {number}: not a row of {len(names)} numbers: {line[:60]!r}")
            counts = [value.replace(",", "") for value in values]
            if part == "marks":
                marks = database.tables.setdefault("QUEUE_WATERMARKS", {})
                for name, count in zip(names, counts, strict=True):
                    marks[f"{port}:{name.removeprefix('UC')}"] = {"bytes": count}
            else:
                rows = database.tables.setdefault("PFC_COUNTERS", {})
                rows.setdefault(port, {}).update(
                    {
                        f"{part}{name.removeprefix('PFC')}": count
                        for name, count in zip(names, counts, strict=True)
                    }
                )
    return database


KIND = FileKind("SONiC pauses (pfcwd, show pfc counters)", "routers", _recognises, _read)
