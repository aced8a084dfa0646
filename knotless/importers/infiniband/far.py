"""Adaptive routing of InfiniBand switches: ``ibdiagnet2.far``, which ``ibdiagnet`` writes.

::

    File version: 1
    Switch 0x0002c90000000001 ...
    Groups Definition:
    Group  Sub Group  WHBF  Ports
    -----------------------------
    0      0          0     2,3,
    LFT Definition:
    PLFT_NUM: 0, top: 0xe
    LID     Static Port  Lid State  Group
    -------------------------------------
    0x000b  2            Free       0
    0x000d  1            Static     0

For a LID whose state is not ``Static``, a switch chooses among the ports of a group with all its
sub-groups: by their load (``Free``), or by a hash (``HBF``). Packets whose SL has no adaptive
routing take the static port, so that it is one of the choices.

References
----------
NVIDIA, ibdiagnet user manual, adaptive routing. Field names as in files that others parse; no
specification of the file is public.

"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import FileKind
from knotless.importers.infiniband.lfts import MAX_LID, NO_PORT

_SWITCH = re.compile(r"Switch\b.*?\b0x([0-9A-Fa-f]{1,16})")
_GROUPS, _LFT = "Groups Definition:", "LFT Definition:"
_GROUP_ROW = re.compile(r"(\d{1,5})\s+\d{1,5}\s+\S{1,10}(?:\s+((?:\d{1,3}\s*,?\s*)*))?$")
_LID_ROW = re.compile(r"0x([0-9A-Fa-f]{1,8})\s+(\d{1,3})\s+([A-Za-z]{1,20})(?:\s+(\d{1,5}))?$")
_PRIVATE = re.compile(r"PLFT_NUM:\s*(\d{1,3})")
_TITLE = re.compile(r"(Group\b|LID\b|-{3,}|#|PLFT_NUM:|File version:)")


@dataclass
class AdaptiveTable:
    """The ports by group, and by LID the static port and the group; None: the port alone.

    ``private`` is whether the switch has several tables, of which the SL and the port of arrival
    choose one.
    """

    groups: dict[int, set[int]] = field(default_factory=dict)
    entries: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    private: bool = False

    def ports(self, lid: int) -> tuple[int, ...]:
        """Return the ports that packets to a LID may take; raises KeyError without an entry."""
        static, group = self.entries[lid]
        ports = {static} if group is None else {static, *self.groups.get(group, ())}
        return tuple(sorted(ports - {NO_PORT})) or (NO_PORT,)


@dataclass
class AdaptiveTables:
    """The tables by the GUID of the switch."""

    of_switch: dict[int, AdaptiveTable] = field(default_factory=dict)


def read_adaptive(text: str) -> AdaptiveTables:
    """Return the tables in ``text``; raises RuleError if a line cannot be read."""
    tables = AdaptiveTables()
    table: AdaptiveTable | None = None
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if switch := _SWITCH.match(line):
            guid, section = int(switch[1], 16), ""
            if guid in tables.of_switch:
                raise RuleError(f"line {number}: switch 0x{guid:016x} occurs twice")
            table = tables.of_switch[guid] = AdaptiveTable()
        elif line.startswith((_GROUPS, _LFT)):
            if table is None:
                raise RuleError(f"line {number}: a table before any line 'Switch 0x...'")
            section = line[: line.index(":") + 1]
            _note_private(table, line)
        elif not line or _TITLE.match(line) or table is None or not section:
            if table is not None:
                _note_private(table, line)
        elif not _add(table, section, line, number):
            raise RuleError(f"line {number}: not a line of adaptive routing: {line[:60]!r}")
    return tables


def _note_private(table: AdaptiveTable, line: str) -> None:
    private = _PRIVATE.search(line)
    table.private |= private is not None and int(private[1]) > 0


def _add(table: AdaptiveTable, section: str, line: str, number: int) -> bool:
    """Add a row; return whether it is one."""
    if section == _GROUPS:
        row = _GROUP_ROW.match(line)
        if row is None:
            return False
        ports = {int(port) for port in re.findall(r"\d+", row[2] or "")}
        if max(ports, default=0) > NO_PORT:
            raise RuleError(f"line {number}: port {max(ports)} is out of range")
        table.groups.setdefault(int(row[1]), set()).update(ports)
        return True
    row = _LID_ROW.match(line)
    if row is None:
        return False
    lid, port = int(row[1], 16), int(row[2])
    if lid > MAX_LID or port > NO_PORT:
        raise RuleError(f"line {number}: LID {lid} or port {port} is out of range")
    group = None if row[3].lower() == "static" or row[4] is None else int(row[4])
    table.entries[lid] = (port, group)
    return True


KIND = FileKind(
    "InfiniBand adaptive routing",
    "infiniband",
    _SWITCH,
    lambda content: read_adaptive(content.text),
    lambda content: _GROUPS in content.head or _LFT in content.head,
)
