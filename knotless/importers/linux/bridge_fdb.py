"""Forwarding databases of Linux bridges: ``bridge -j fdb`` and ``bridge fdb``.

::

    02:00:00:00:00:05 dev swp4 vlan 10 master br0 static

An entry is a route to the address ``MAC@VLAN``. A frame without an entry is sent to all ports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind
from knotless.importers.route_dump import DEFAULT_VRF, NextHop, RouteDump

_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_LINE = re.compile(rf"({_MAC.pattern}) dev (\S+)(.*)$", re.MULTILINE)
_MARK = re.compile(rf"\A\s*(?:\[(?=.*?\"mac\")|{_MAC.pattern} dev \S)", re.DOTALL)
_VLAN = re.compile(r"\bvlan (\d{1,4})\b")
_DST = re.compile(r"\bdst (\S+)")


def _fits(content: Content) -> bool:
    if not content.text.lstrip().startswith("["):
        return True
    return isinstance(content.json, list) and all(
        isinstance(entry, dict) and {"mac", "ifname"} <= entry.keys() for entry in content.json
    )


def _read(content: Content) -> RouteDump:
    listed = content.text.lstrip().startswith("[")
    dump = RouteDump()
    for mac, entry in _of_json(content.json) if listed else _of_text(content.text):
        # Own addresses are permanent; without a master, it is a filter of the port itself.
        if entry.get("state") == "permanent" or "master" not in entry or int(mac[:2], 16) & 1:
            continue
        vlan = entry.get("vlan", 0)
        if not isinstance(vlan, int) or not 0 <= vlan < 4096:
            raise RuleError(f"{mac}: the VLAN must be a number below 4096")
        address = f"{mac.lower()}@{vlan}"
        hop = NextHop(None, str(entry["ifname"]))
        if "dst" in entry:
            dump.unclear.append(f"{address}: behind a tunnel to {entry['dst']}")
        first = dump.routes.setdefault((DEFAULT_VRF, address), (hop,))
        if first != (hop,):
            dump.unclear.append(f"{address}: on {hop.interface} and {first[0].interface}")
    return dump


def _of_json(value: list[dict[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for entry in value:
        if _MAC.fullmatch(str(entry["mac"])) is None:
            raise RuleError(f"{str(entry['mac'])[:40]!r} is not a MAC")
        yield str(entry["mac"]), entry


def _of_text(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        row = _LINE.match(line.strip())
        if row is None:
            raise RuleError(f"line {number}: not a line of bridge fdb: {line[:60]!r}")
        words, entry = row[3].split(), dict[str, Any](ifname=row[2])
        if vlan := _VLAN.search(row[3]):
            entry["vlan"] = int(vlan[1])
        if dst := _DST.search(row[3]):
            entry["dst"] = dst[1]
        if "master" in words:
            entry["master"] = True
        if "permanent" in words:
            entry["state"] = "permanent"
        yield row[1], entry


KIND = FileKind("Linux bridge (bridge fdb)", "routers", _MARK, _read, _fits)
