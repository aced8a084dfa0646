"""Ports of an Open vSwitch bridge: ``ovs-ofctl dump-ports-desc`` and ``ovs-ofctl show``.

::

     1(s1-eth1): addr:be:94:47:d8:b9:6c
         config:     NO_FLOOD
         state:      LIVE
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind

_PORT = re.compile(r"^\s*(\d{1,10}|LOCAL)\(([^()\n]{1,64})\): addr:", re.MULTILINE)
MAX_PORT = 0xFFFFFF00
_NO_FLOOD = re.compile(r"^ *config: .*\b(?:NO_FLOOD|NO_FWD)\b", re.MULTILINE)
_BLOCKED = re.compile(
    r"^ *(?:config|state): .*\b(?:PORT_DOWN|BLOCKED|STP_(?:BLOCK|LISTEN|LEARN))\b", re.MULTILINE
)


@dataclass(frozen=True)
class OvsPorts:
    """The number of each port by its name; ``name`` is that of the bridge, if it is listed.

    ``not_flooded`` are the numbers of ports to which neither FLOOD nor NORMAL floods, ``blocked``
    of those that neither send nor receive: an administrator or spanning tree says so.
    """

    name: str | None
    numbers: dict[str, int]
    not_flooded: frozenset[int]
    blocked: frozenset[int]


def _read(content: Content) -> OvsPorts:
    name: str | None = None
    numbers: dict[str, int] = {}
    not_flooded, blocked = set[int](), set[int]()
    matches = [*_PORT.finditer(content.text)]
    ends = [match.start() for match in matches[1:]] + [len(content.text)]
    for match, end in zip(matches, ends, strict=False):
        number, port = match.groups()
        if number == "LOCAL":
            name = port
        elif not 0 < int(number) < MAX_PORT:
            raise RuleError(f"port {number} of {port!r} is out of range")
        elif numbers.setdefault(port, int(number)) != int(number):
            raise RuleError(f"port {port!r} has two numbers")
        else:
            if _NO_FLOOD.search(content.text, match.end(), end):
                not_flooded.add(int(number))
            if _BLOCKED.search(content.text, match.end(), end):
                blocked.add(int(number))
    return OvsPorts(name, numbers, frozenset(not_flooded), frozenset(blocked))


KIND = FileKind("Open vSwitch ports", "openflow", _PORT, _read)
