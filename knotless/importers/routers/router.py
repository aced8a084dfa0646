"""One router of an imported fabric, before the fabric is put together, and its tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from knotless.importers.cabling.lldp_json import Neighbour
from knotless.importers.causes import Source
from knotless.importers.frr.configuration import FrrConfiguration
from knotless.importers.route_dump import RouteDump
from knotless.importers.sonic.buffer_tables import BufferTables, read_buffers
from knotless.importers.sonic.database import Fields

INTERFACE_TABLES = (
    "INTERFACE",
    "VLAN_INTERFACE",
    "PORTCHANNEL_INTERFACE",
    "VLAN_SUB_INTERFACE",
)
"""The tables of interfaces that lead out of a router; their keys are ``Ethernet0|10.0.0.1/31``."""


@dataclass
class Router:
    """A router: the tables of its databases, its routes by source, and what its ports hear.

    ``host`` is what the device calls itself: a device with several chips (ASICs) or VRFs is one
    router for each. ``heard`` is None if nothing is known of its neighbours. ``configuration`` is
    read only if routes are to be computed from it. ``source`` is where it was read.
    """

    name: str
    host: str
    tables: dict[str, dict[str, Fields]] = field(default_factory=dict)
    dumps: list[tuple[str, RouteDump]] = field(default_factory=list)
    heard: list[Neighbour] | None = None
    configuration: FrrConfiguration | None = None
    source: Source = field(default_factory=Source)

    def table(self, name: str) -> dict[str, Fields]:
        """Return a table; empty if there is none."""
        return self.tables.get(name, {})

    @cached_property
    def buffers(self) -> BufferTables:
        """The buffers, read on first use, when all tables are there."""
        return read_buffers(self.tables)


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key by which leaf2 comes before leaf10."""
    parts: list[tuple[int, int, str]] = []
    digits = text = ""
    for character in name + "\0":
        if character in "0123456789":
            if text:
                parts.append((1, 0, text))
            digits, text = digits + character, ""
        else:
            if digits:
                parts.append((0, int(digits[:18]), digits))
            digits, text = "", text + character
    return [*parts, (1, 0, text)]
