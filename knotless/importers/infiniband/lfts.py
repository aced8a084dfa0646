"""Linear forwarding tables of InfiniBand switches: ``dump_fts`` and OpenSM's ``opensm-lfts.dump``.

::

    Unicast lids [0x0-0x12] of switch DR path ... guid 0x0000000000200003 (leaf1):
    0x0001 004 : (Channel Adapter portguid 0x0000000000100001: 'h001')
    18 valid lids dumped

OpenSM writes ``#`` instead of ``:``, ``switch Lid 2 guid ...`` and ``18 lids dumped``.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import FileKind

NO_PORT = 255
MAX_LID = 0xBFFF
"""The highest unicast LID."""
_HEADER = re.compile(r"Unicast lids \[\S{1,20}\] of switch .*?guid 0x([0-9A-Fa-f]{1,16})")
_ROW = re.compile(r"0x([0-9A-Fa-f]{1,8})\s+(\d{1,3})\s*(?:[:#]|$)")
_END = re.compile(r"(\d{1,6}) (valid )?lids dumped")
_TITLE = re.compile(r"(Lid\s+Out\b|Port\s+Info\b|%)")


@dataclass
class ForwardingTable:
    """The entries of a switch: ``lids`` and the output port for each.

    Port 255 means that there is no entry, port 0 the switch itself.
    """

    lids: array[int] = field(default_factory=lambda: array("H"))
    ports: bytearray = field(default_factory=bytearray)


@dataclass
class ForwardingTables:
    """``of_switch`` are the tables by the GUID of the switch.

    ``cut_off`` are the GUIDs of the switches whose rows do not end as they should.
    """

    of_switch: dict[int, ForwardingTable] = field(default_factory=dict)
    cut_off: set[int] = field(default_factory=set)


def read_tables(text: str) -> ForwardingTables:
    """Return the tables in ``text``; raises RuleError if a line cannot be read."""
    tables = ForwardingTables()
    table: ForwardingTable | None = None
    guid = 0
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or _TITLE.match(line):
            continue
        if header := _HEADER.match(line):
            guid = int(header[1], 16)
            if guid in tables.of_switch:
                raise RuleError(f"line {number}: a second table of switch 0x{guid:016x}")
            table = tables.of_switch[guid] = ForwardingTable()
            tables.cut_off.add(guid)
        elif table is None:
            raise RuleError(f"line {number}: an entry before any 'Unicast lids' line")
        elif row := _ROW.match(line):
            lid, port = int(row[1], 16), int(row[2])
            if lid > MAX_LID or port > NO_PORT:
                raise RuleError(f"line {number}: LID {lid} or port {port} is out of range")
            table.lids.append(lid)
            table.ports.append(port)
        elif end := _END.match(line):
            # OpenSM also counts the LIDs without a path, which it does not list.
            rows, announced = len(table.lids), int(end[1])
            if rows == announced or (rows < announced and not end[2]):
                tables.cut_off.discard(guid)
        else:
            raise RuleError(f"line {number}: not a line of a forwarding table: {line[:60]!r}")
    return tables


KIND = FileKind(
    "InfiniBand forwarding tables",
    "infiniband",
    _HEADER,
    lambda content: read_tables(content.text),
)
