"""Addresses that an Open vSwitch bridge has learned: ``ovs-appctl fdb/show BRIDGE``.

::

     port  VLAN  MAC                Age
        1     0  02:00:00:00:00:01    2
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind

_TITLE = re.compile(r"\A\s*port\s+VLAN\s+MAC\s+Age")
_ROW = re.compile(r"(\d{1,5}|LOCAL)\s+(\d{1,4})\s+((?:[0-9a-f]{2}:){5}[0-9a-f]{2})\s+\S+$")


@dataclass(frozen=True)
class OvsAddresses:
    """(port, VLAN, MAC) of each address; port 0 is the bridge itself (LOCAL)."""

    learned: tuple[tuple[int, int, str], ...]


def _read(content: Content) -> OvsAddresses:
    learned = []
    for number, line in enumerate(content.text.split("\n"), 1):
        row = _ROW.match(line.strip())
        if row is not None:
            learned.append((0 if row[1] == "LOCAL" else int(row[1]), int(row[2]), row[3]))
        elif line.strip() and not _TITLE.match(line):
            raise RuleError(f"line {number}: not a line of fdb/show: {line[:60]!r}")
    return OvsAddresses(tuple(learned))


KIND = FileKind(
    "Open vSwitch addresses",
    "openflow",
    _TITLE,
    _read,
)
