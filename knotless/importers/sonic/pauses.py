"""Paused queues of SONiC switches, from their databases and commands.

A queue is *stopped* if the PFC watchdog sees a storm there, or the chip says that it is paused now.
That it *was* paused follows from history: storms that the watchdog has detected and restored since,
counters of received PFC frames, and the history of pauses that some chips keep.

References
----------
sonic-net/sonic-swss, orchagent/pfcwdorch.cpp (``PFC_WD_TABLE_INSTORM``, ``PFC_WD_STATUS``) and
pfc_restore.lua (what ends a storm), issue 4581; sonic-net/sonic-buildimage, issue 29203; SAI,
saiport.h and saiqueue.h; sonic-net/SONiC, doc/pfc (historical statistics of PFC).

"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from knotless.base.printable import listed
from knotless.importers.fabric import Config, TableFabric

_RX = re.compile(r"SAI_PORT_STAT_PFC_([0-7])_RX_PKTS")
_PAUSED = re.compile(
    r"(?:SAI|EST)_PORT_STAT_PFC_([0-7])_(?:ON2OFF_RX_PKTS|RX_PAUSE_DURATION_US|RECENT_PAUSE_TIME_US)"
)
_OF_PAUSES = ("PFC_WD_TABLE_INSTORM", "PFCWD_STATS", "PFC_COUNTERS", "PFC_HISTORY", "COUNTERS")
"""Tables that tell about pauses; a switch that has none of these was not asked."""

_MANY_STORMS = 10
"""Storms that have begun and ended again, from which on they may be one that goes on."""
_SHOWN = 3

Queue = tuple[str, str, int]
"""A switch, one of its ports, and a priority."""


@dataclass(frozen=True)
class Pauses:
    """The paused queues of a fabric.

    ``stopped`` are paused now, ``paused`` have been paused at some time, both with what says so.
    ``watched`` are the switches whose pauses were read. ``filled`` is the most bytes that a queue
    held. ``notes`` are what the watchdogs' own behaviour may explain.
    """

    stopped: Mapping[Queue, str]
    paused: Mapping[Queue, str]
    watched: frozenset[str]
    filled: Mapping[Queue, int]
    notes: tuple[str, ...] = ()


def pauses_of(imported: TableFabric) -> Pauses:
    """Return the pauses that the databases and outputs of the switches have."""
    stopped: dict[Queue, str] = {}
    paused: dict[Queue, str] = {}
    filled: dict[Queue, int] = {}
    watched = set()
    in_storm, returning = list[str](), list[str]()
    for switch, tables in zip(imported.fabric.switches, imported.configs, strict=False):
        ports = tables.get("PORT", {})
        if any(tables.get(name) for name in _OF_PAUSES):
            watched.add(switch.name)
        for port, priority, why in _stopped(tables):
            if not ports or port in ports:
                stopped.setdefault((switch.name, port, priority), why)
        for port, priority, why in _history(tables):
            if not ports or port in ports:
                place = (switch.name, port, priority)
                paused[place] = f"{paused[place]}; {why}" if place in paused else why
        for key, fields in tables.get("QUEUE_WATERMARKS", {}).items():
            port, _, queue = key.rpartition(":")
            filled[switch.name, port, _number(queue)] = _number(fields.get("bytes", ""))
        storms = _storms(tables)
        in_storm += [f"{switch.name}:{queue}" for queue in storms if storms[queue].goes_on]
        returning += [f"{switch.name}:{port}" for port in _ports_of_returning_storms(storms)]
    notes = tuple(_notes(in_storm, returning))
    return Pauses(stopped, paused, frozenset(watched), filled, notes)


def _notes(in_storm: list[str], returning: list[str]) -> Iterator[str]:
    if in_storm:
        yield (
            f"a watchdog holds {listed(in_storm, _SHOWN)} in a storm until no PFC frames arrive at"
            " all, also none that resume: the neighbour may have stopped pausing (sonic-swss 4581)"
        )
    if returning:
        yield (
            f"storms of all watched queues of {listed(returning, _SHOWN)} began and ended again and"
            " again: it may be one that goes on, where chips count no PFC frames while PFC is off"
            " for all queues of a port (sonic-buildimage 29203)"
        )


def _ports_of_returning_storms(storms: Mapping[str, _Storms]) -> list[str]:
    """Return the ports all of whose watched queues had many storms, nearly all of them over."""
    by_port: dict[str, list[_Storms]] = {}
    for queue, counted in storms.items():
        by_port.setdefault(queue.rpartition(":")[0], []).append(counted)
    return [port for port, of_port in by_port.items() if all(one.come_and_go for one in of_port)]


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


def _history(tables: Config) -> Iterator[tuple[str, int, str]]:
    """Yield the queues that were paused at some time, with what says so, each once or more."""
    for queue, storms in _storms(tables).items():
        port, _, number = queue.rpartition(":")
        if storms.detected:
            text = f"{storms.detected} storms detected, {storms.restored} restored"
            yield port, _number(number), text
    for (port, priority), frames in _frames(tables).items():
        yield port, priority, f"{frames} PFC frames received"
    for queue, fields in tables.get("PFC_HISTORY", {}).items():
        port, _, number = queue.rpartition(":")
        if any(map(_number, fields.values())):
            pauses, time_us = fields["transitions"], fields["total_us"]
            yield port, _number(number), f"{pauses} pauses of {time_us} us (show pfc counters)"
    counters = tables.get("COUNTERS", {})
    for port, row in tables.get("COUNTERS_PORT_NAME_MAP", {}).items():
        kept = counters.get(row.get("", ""), {}).items()
        names = (_PAUSED.fullmatch(name) for name, count in kept if _number(count))
        for number in sorted({name[1] for name in names if name}):
            yield port, _number(number), "history of pauses in COUNTERS_DB"


@dataclass(frozen=True)
class _Storms:
    """The storms of a queue that its watchdog has counted, and whether one goes on."""

    detected: int
    restored: int
    goes_on: bool

    @property
    def come_and_go(self) -> bool:
        return self.restored >= _MANY_STORMS and self.detected - self.restored in (0, 1)


def _storms(tables: Config) -> dict[str, _Storms]:
    """Return the storms of each queue that the watchdog watches, by port and queue."""
    storms = {
        queue: _Storms(
            _number(fields.get("detected", "")),
            _number(fields.get("restored", "")),
            fields["status"] == "stormed",
        )
        for queue, fields in tables.get("PFCWD_STATS", {}).items()
    }
    counters = tables.get("COUNTERS", {})
    for queue, row in tables.get("COUNTERS_QUEUE_NAME_MAP", {}).items():
        fields = counters.get(row.get("", ""), {})
        detected, restored = (
            _number(fields.get(f"PFC_WD_QUEUE_STATS_DEADLOCK_{what}", ""))
            for what in ("DETECTED", "RESTORED")
        )
        if detected or "PFC_WD_STATUS" in fields:
            goes_on = fields.get("PFC_WD_STATUS") == "stormed"
            storms.setdefault(queue, _Storms(detected, restored, goes_on))
    return storms


def _frames(tables: Config) -> dict[tuple[str, int], int]:
    """Return how many PFC frames were received, by port and priority, where there were any."""
    frames: dict[tuple[str, int], int] = {}
    counters = tables.get("COUNTERS", {})
    for port, row in tables.get("COUNTERS_PORT_NAME_MAP", {}).items():
        for name, count in counters.get(row.get("", ""), {}).items():
            if rx := _RX.fullmatch(name):
                frames[port, int(rx[1])] = _number(count)
    for port, fields in tables.get("PFC_COUNTERS", {}).items():
        for name, count in fields.items():
            if name.startswith("rx"):
                place = (port, _number(name[2:]))
                frames[place] = max(frames.get(place, 0), _number(count))
    return {place: count for place, count in frames.items() if count}


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
