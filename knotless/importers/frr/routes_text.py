"""Output of FRR's ``show ip route`` as text.

::

    B>* 10.1.0.2/32 [20/0] via 10.0.0.1, Ethernet0, weight 1, 00:00:06
      *                    via 10.0.0.3, Ethernet4, weight 1, 00:00:06

``>`` marks the selected route, ``*`` next hops in the forwarding table.
"""

from __future__ import annotations

import re

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind
from knotless.importers.route_dump import DEFAULT_VRF, DROP, NextHop, RouteDump

_TITLE = re.compile("Codes: K - kernel route")
_VRF = re.compile(r"(?:IPv[46] unicast )?VRF (\S+):$")
_ROUTE = re.compile(
    r"([A-Za-z])([> ])([* ]|[a-z#])\s*([0-9a-fA-F.:]+/\d{1,3})\s*(?:\[\S+\]\s*)?(.*)$"
)
_MORE = re.compile(r"\s{2}([* ]|[a-z#])\s+(.*)$")
_VIA = re.compile(r"via ([0-9a-fA-F.:]+),\s*([^,\s]+)")
_DIRECT = re.compile(r"is directly connected,\s*([^,\s]+)")
_DROPS = re.compile(r"unreachable|blackhole|reject|prohibit")


def _read(content: Content) -> RouteDump:
    dump = RouteDump()
    vrf = DEFAULT_VRF
    current: tuple[str, str] | None = None
    in_legend = False
    for number, line in enumerate(content.text.split("\n"), 1):
        if line.startswith("Codes:"):
            in_legend = True
        if not line.strip():
            in_legend = False
            continue
        if in_legend:
            continue
        if title := _VRF.match(line.strip()):
            vrf, current = title[1], None
        elif route := _ROUTE.match(line):
            current = (vrf, route[4]) if route[2] == ">" else None
            if current and route[3] == "*":
                dump.routes[current] = (_next_hop(route[5], number),)
        elif more := _MORE.match(line):
            if current and more[1] == "*" and "recursive" not in more[2]:
                hop = _next_hop(more[2], number)
                dump.routes[current] = (*dump.routes.get(current, ()), hop)
        elif current is not None or line[0] != "%":
            raise RuleError(f"line {number}: not a line of show ip route: {line[:60]!r}")
    return dump


def _next_hop(text: str, number: int) -> NextHop:
    if via := _VIA.search(text):
        return NextHop(via[1], via[2])
    if direct := _DIRECT.search(text):
        return NextHop(None, direct[1])
    if _DROPS.search(text):
        return DROP
    raise RuleError(f"line {number}: not a next hop: {text[:60]!r}")


KIND = FileKind("FRR routes (text)", "routers", _TITLE, _read)
