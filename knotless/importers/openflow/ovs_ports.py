"""Ports of an Open vSwitch bridge: ``ovs-ofctl dump-ports-desc`` and ``ovs-ofctl show``.

::

     1(s1-eth1): addr:be:94:47:d8:b9:6c
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind

_PORT = re.compile(r"^\s*(\d{1,10}|LOCAL)\(([^()\n]{1,64})\): addr:", re.MULTILINE)
MAX_PORT = 0xFFFFFF00


@dataclass(frozen=True)
class OvsPorts:
    """The number of each port by its name; ``name`` is that of the bridge, if it is listed."""

    name: str | None
    numbers: dict[str, int]


def _read(content: Content) -> OvsPorts:
    name: str | None = None
    numbers: dict[str, int] = {}
    for number, port in _PORT.findall(content.text):
        if number == "LOCAL":
            name = port
        elif not 0 < int(number) < MAX_PORT:
            raise RuleError(f"port {number} of {port!r} is out of range")
        elif numbers.setdefault(port, int(number)) != int(number):
            raise RuleError(f"port {port!r} has two numbers")
    return OvsPorts(name, numbers)


KIND = FileKind(
    "Open vSwitch ports", "openflow", lambda content: bool(_PORT.search(content.head)), _read
)
