"""SL to VL tables of InfiniBand ports, as OpenSM dumps them (``opensm-sl2vl.dump``).

::

    Switch 0x0000000000200000, base LID 2, "spine0"
    #in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
    0   1   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  7

Input port 0 is the switch itself. VL 15 means that packets are dropped. A channel adapter has one
row for each of its ports, ``0 0``, below the GUID of the port.
"""

from __future__ import annotations

import re

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import FileKind

SLS = 16
DROP_VL = 15
_NODE = re.compile(r"(Switch|Channel Adapter|Router) 0x([0-9A-Fa-f]{1,16}), base LID (\d+)")
_ROW = re.compile(r"(\d{1,3})\s+(\d{1,3})\s*:((?:\s+\d{1,2}){16})$")

SlTables = dict[tuple[int, int, int], tuple[int, ...]]
"""By GUID, input port and output port: the VL of each SL. Adapters have ports 0 and 0."""


def read_sl2vl(text: str) -> SlTables:
    """Return the tables; raises RuleError if a line cannot be read."""
    tables: SlTables = {}
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    guid: int | None = None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if node := _NODE.match(line):
            guid = int(node[2], 16)
        elif (row := _ROW.match(line)) and guid is not None:
            vls = tuple(map(int, row[3].split()))
            if max(vls) > DROP_VL:
                raise RuleError(f"line {number}: VL {max(vls)}, at most {DROP_VL} exists")
            key = (guid, int(row[1]), int(row[2]))
            vls = shared.setdefault(vls, vls)
            if tables.setdefault(key, vls) != vls and key[1:] == (0, 0):
                tables[key] = ()  # ports of an adapter with its GUID, which differ
            elif tables[key] != vls:
                raise RuleError(f"line {number}: a second table of ports {key[1]} to {key[2]}")
        else:
            raise RuleError(f"line {number}: not a line of an SL to VL table: {line[:60]!r}")
    return tables


KIND = FileKind(
    "InfiniBand SL to VL tables",
    "infiniband",
    _NODE,
    lambda content: read_sl2vl(content.text),
    lambda content: "#in out :" in content.head,
)
