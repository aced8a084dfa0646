"""Pauses of a SONiC switch, as its commands print them.

``pfcwd show stats``, ``show pfc counters``, the same with ``--history``, and ``show queue watermark
unicast`` become tables, like those of a database: ``PFCWD_STATS`` (by port and queue),
``PFC_COUNTERS`` (by port), ``PFC_HISTORY`` (by port and priority) and ``QUEUE_WATERMARKS`` (by port
and queue). They may be anywhere in the record of a terminal, where a prompt ends them.

::

          QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP
    -----------  -----------  -------------------------  ------------
    Ethernet0:3      stormed                        1/0           0/0

      Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
    ---------  ------  ------  ------  ------  ------  ------  ------  ------
    Ethernet0       0       0       0   1,204       0       0       0       0

         Port    Priority    RX Pause Transitions    Total RX Pause Time US    Recent RX Pause ..
    ---------  ----------  ----------------------  ------------------------  ------------------
    Ethernet0        PFC3                       6                 1,430,570             527,739

References
----------
sonic-net/sonic-utilities, doc/Command-Reference.md.

"""

from __future__ import annotations

import re

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind
from knotless.importers.sonic.database import SonicTables

_STATS = re.compile(r"^[ \t]*QUEUE[ \t]+STATUS[ \t]+STORM DETECTED", re.MULTILINE)
_HEAD = re.compile(r"^[ \t]*Port (?P<way>Rx|Tx)[ \t]+PFC0[ \t]", re.MULTILINE)
_HISTORY = re.compile(r"^[ \t]*Port[ \t]+Priority[ \t]+RX Pause Transitions[ \t]", re.MULTILINE)
_MARKS = re.compile(r"^[ \t]*Port[ \t]+UC0[ \t]", re.MULTILINE)
_TITLE = re.compile(
    "|".join(title.pattern for title in (_STATS, _HEAD, _HISTORY, _MARKS)), re.MULTILINE
)
_MARKED_WITHIN = 1 << 20
"""Characters of the record of a terminal in which the first of these tables begins."""
_PROMPT = re.compile(r"(\S{1,200} )?\S{0,200}[#$>%](\s|$)")
_QUEUE = re.compile(r"\s*(\S+):(\d{1,2})\s+(stormed|operational)\b(?:\s+(\d+)/(\d+)\b)?")
_PAUSE = re.compile(r"\s*(\S+)\s+PFC(\d)\s+([\d,]+|N/A)\s+([\d,]+|N/A)\s+([\d,]+|N/A)(\s|$)")
_RULE = re.compile(r"[-\s]+")
_PORT = re.compile(r"[A-Za-z][\w/.-]*")


def _read(content: Content) -> SonicTables:
    database = SonicTables()
    part, names = "", list[str]()
    for number, line in enumerate(content.text.split("\n"), 1):
        if _STATS.match(line):
            part = "stats"
        elif _HISTORY.match(line):
            part = "history"
        elif head := _HEAD.match(line):
            part, names = head["way"].lower(), line.split()[2:]
        elif _MARKS.match(line):
            part, names = "marks", line.split()[1:]
        elif _PROMPT.match(line):
            part = ""
        elif not line.strip():
            part = part if part == "history" else ""  # which has one between its ports
        elif part and not _RULE.fullmatch(line):
            _add_row(database, part, names, number, line)
    return database


def _add_row(database: SonicTables, part: str, names: list[str], number: int, line: str) -> None:
    """Add a row of a table; raises RuleError if it is none."""
    if part == "stats":
        if queue := _QUEUE.match(line):
            rows = database.tables.setdefault("PFCWD_STATS", {})
            storms = {"detected": queue[4], "restored": queue[5]} if queue[4] else {}
            rows[f"{queue[1]}:{queue[2]}"] = {"status": queue[3], **storms}
        return
    if part == "history":
        if (pause := _PAUSE.match(line)) is None:
            raise RuleError(f"line {number}: not a row of the history of PFC: {line[:60]!r}")
        keys = ("transitions", "total_us", "recent_us")
        counts = (text.replace(",", "") for text in pause.group(3, 4, 5))
        rows = database.tables.setdefault("PFC_HISTORY", {})
        rows[f"{pause[1]}:{pause[2]}"] = dict(zip(keys, counts, strict=True))
        return
    port, *values = line.split()
    if not _PORT.fullmatch(port) or len(values) != len(names):
        raise RuleError(f"line {number}: not a row of {len(names)} numbers: {line[:60]!r}")
    by_name = zip(names, (value.replace(",", "") for value in values), strict=True)
    if part == "marks":
        marks = database.tables.setdefault("QUEUE_WATERMARKS", {})
        for name, count in by_name:
            marks[f"{port}:{name.removeprefix('UC')}"] = {"bytes": count}
    else:
        rows = database.tables.setdefault("PFC_COUNTERS", {})
        rows.setdefault(port, {}).update(
            {f"{part}{name.removeprefix('PFC')}": count for name, count in by_name}
        )


KIND = FileKind(
    "SONiC pauses (pfcwd, show pfc counters)",
    "routers",
    _TITLE,
    _read,
    marked_within=_MARKED_WITHIN,
)
