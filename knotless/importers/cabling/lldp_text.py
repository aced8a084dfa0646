"""Neighbours by LLDP as text: output of ``lldpctl`` and ``lldpcli show neighbors``.

::

    Interface:    Ethernet0, via: LLDP, RID: 1, Time: 0 day, 00:00:06
      Chassis:
        SysName:      spine1
        Capability:   Router, on
      Port:
        PortID:       ifname Ethernet0
        PortDescr:    Ethernet0
"""

from __future__ import annotations

import re

from knotless.importers.cabling.lldp_json import Neighbour, Neighbours
from knotless.importers.file_kinds import Content, FileKind

_INTERFACE = re.compile(r"Interface:\s+([^\s,]+), via: LLDP", re.MULTILINE)
_FIELD = re.compile(r"\s+(SysName|Capability|PortID|PortDescr):\s+(.*)$")


def _read(content: Content) -> Neighbours:
    neighbours = Neighbours()
    fields: dict[str, str] = {}
    interface = ""
    for line in [*content.text.split("\n"), "Interface:  end, via: LLDP"]:
        if start := _INTERFACE.match(line):
            if interface:
                neighbours.heard.append(_neighbour(interface, fields))
            interface, fields = start[1], {}
        elif field := _FIELD.match(line):
            name, value = field[1], field[2].strip()
            if name == "Capability":
                if value.endswith(", on"):
                    fields[value] = name
            else:
                fields.setdefault(name, value)
    return neighbours


def _neighbour(interface: str, fields: dict[str, str]) -> Neighbour:
    kind, _, port = fields.get("PortID", "").partition(" ")
    enabled = {name for name, value in fields.items() if value == "Capability"}
    return Neighbour(
        interface,
        fields.get("SysName", ""),
        port or kind,
        fields.get("PortDescr", ""),
        bool(enabled & {"Bridge, on", "Router, on"}) if enabled else None,
    )


KIND = FileKind(
    "LLDP neighbours (text)",
    "cables",
    _INTERFACE,
    _read,
)
