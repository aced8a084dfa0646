"""Which queues of SONiC switches are paused: what their databases and commands say.

A queue is *stopped* if the PFC watchdog sees a storm there, or the chip says that it is paused now.
That it *was* paused follows from counters of received PFC frames.

References
----------
sonic-net/sonic-swss, orchagent/pfcwdorch.cpp (``PFC_WD_TABLE_INSTORM``, ``PFC_WD_STATUS``); SAI,
saiport.h and saiqueue.h.

"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from knotless.importers.fabric import Config, TableFabric

_RX = re.compile(r"SAI_PORT_STAT_PFC_([0-7])_RX_PKTS")
_OF_PAUSES = ("PFC_WD_TABLE_INSTORM", "PFCWD_STATS", "PFC_COUNTERS", "COUNTERS")
"""Tables that tell about pauses; a switch that has none of these was not asked."""

Queue = tuple[str, str, int]
"""A switch, one of its ports, and a priority."""


@dataclass(frozen=True)
class Pauses:
    """The paused queues of a fabric.

    ``stopped`` are paused now, with what says so; ``paused`` have been paused at some time, with
    the number of PFC frames. ``watched`` are the switches whose pauses were read. ``filled`` is the
    most bytes that a queue held.
    """

    stopped: Mapping[Queue, str]
    paused: Mapping[Queue, int]
    watched: frozenset[str]
    filled: Mapping[Queue, int]


def pauses_of(imported: TableFabric) -> Pauses:
    """Return the pauses that the databases and outputs of the switches have."""
    stopped: dict[Queue, str] = {}
    paused: dict[Queue, int] = {}
    filled: dict[Queue, int] = {}
    watched = set()
    for switch, tables in zip(imported.fabric.switches, imported.configs, strict=False):
        ports = tables.get("PORT", {})
        if any(tables.get(name) for name in _OF_PAUSES):
            watched.add(switch.name)
        for port, priority, why in _stopped(tables):
            if not ports or port in ports:
                stopped.setdefault((switch.name, port, priority), why)
        for port, priority, frames in _counted(tables):
            if frames and (not ports or port in ports):
                paused[switch.name, port, priority] = frames
        for key, fields in tables.get("QUEUE_WATERMARKS", {}).items():
            port, _, queue = key.rpartition(":")
            filled[switch.name, port, _number(queue)] = _number(fields.get("bytes", ""))
    return Pauses(stopped, paused, frozenset(watched), filled)


def _stopped(tables: Config) -> Iterator[tuple[str, int, str]]:
    for port, fields in tables.get("PFC_WD_TABLE_INSTORM", {}).items():
        for priority in fields:
            yield port, _number(priority), "PFC_WD_TABLE_INSTORM"
    for key, fields in tables.get("PFCWD_STATS", {}).items():
        if fields["status"] == "stormed":
            port, _, priority = key.rpartition(":")
            yield port, _number(priority), "pfcwd show stats"
    counters = tables.get("COUNTERS", {})
    for key, row in tables.get("COUNTERS_QUEUE_NAME_MAP", {}).items():
        fields = counters.get(row.get("", ""), {})
        port, _, queue = key.rpartition(":")
        if fields.get("PFC_WD_STATUS") == "stormed":
            yield port, _number(queue), "PFC_WD_STATUS"
        elif fields.get("SAI_QUEUE_ATTR_PAUSE_STATUS") == "true":
            yield port, _number(queue), "SAI_QUEUE_ATTR_PAUSE_STATUS"


def _counted(tables: Config) -> Iterator[tuple[str, int, int]]:
    for port, fields in tables.get("PFC_COUNTERS", {}).items():
        for name, count in fields.items():
            if name.startswith("rx"):
                yield port, _number(name[2:]), _number(count)
    counters = tables.get("COUNTERS", {})
    for port, row in tables.get("COUNTERS_PORT_NAME_MAP", {}).items():
        for name, count in counters.get(row.get("", ""), {}).items():
            if rx := _RX.fullmatch(name):
                yield port, int(rx[1]), _number(count)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
