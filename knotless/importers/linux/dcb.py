"""PFC of Linux: output of ``dcb pfc show`` and others, each below a line with the command.

::

    dcb pfc show dev swp1
    pfc-cap 8 macsec-bypass off delay 0
    prio-pfc 0:off 1:off 2:off 3:on 4:on 5:off 6:off 7:off

The result has the form of SONiC's CONFIG_DB; classes are priorities. A priority's queue (traffic
class) and buffer are called by the lowest priority that uses them. Table DCB has the commands whose
output is missing, by port.

References
----------
iproute2, man pages dcb-pfc, dcb-app, dcb-ets and dcb-buffer.

"""

from __future__ import annotations

import re
from collections.abc import Mapping

from knotless.base.errors import RuleError
from knotless.base.model_limits import PRIORITIES
from knotless.importers.file_kinds import Content, FileKind
from knotless.importers.sonic.database import SonicTables

_COMMAND = re.compile(r"(?:.*\s)?dcb(?: -\S+)* (\w+) show dev (\S{1,64})\s*$")
_SEARCHED = re.compile(r"^(?:.*\s)?dcb(?: -\S+)* \w+ show dev \S", re.MULTILINE)
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)+")
_KEYS = {
    "pfc": ("prio-pfc",),
    "app": ("dscp-prio", "default-prio"),
    "ets": ("prio-tc",),
    "buffer": ("prio-buffer",),
}
"""The keys that each command prints; of each group one is needed."""
_READ = {"pcp-prio", *(key for keys in _KEYS.values() for key in keys)}
_DSCPS = {
    **{f"CS{n}": 8 * n for n in range(8)},
    **{f"AF{n}{drop}": 8 * n + 2 * drop for n in range(1, 5) for drop in range(1, 4)},
    "EF": 46,
    "VOICE-ADMIT": 44,
    "LE": 1,
    "default": 0,
}
_MAX_DSCP = 63

Values = dict[str, dict[str, str]]
"""The output of the commands for a port: numbers by key, such as ``prio-pfc``."""


def _read(content: Content) -> SonicTables:
    shown: dict[str, Values] = {}
    port_shown: str | None = None
    for number, line in enumerate(content.text.split("\n"), 1):
        if command := _COMMAND.match(line):
            port_shown = command[2]
            shown.setdefault(port_shown, {})
        elif port_shown is not None:
            _add(shown[port_shown], line, number)
    database = SonicTables({"DCB": {}})
    for port, values in shown.items():
        _add_port(database, port, values)
    return database


def _add(values: Values, line: str, number: int) -> None:
    """Add what a line shows: words such as ``prio-tc``, each followed by pairs ``3:1``."""
    key = ""
    for word in line.split():
        if _WORD.fullmatch(word):
            key = word
            continue
        name, mark, value = word.partition(":")
        if key == "default-prio":
            name, mark, value = "", ":", word
        if key in _READ and mark and values.setdefault(key, {}).setdefault(name, value) != value:
            raise RuleError(f"line {number}: {key} has {name[:20]!r} twice")


def _add_port(database: SonicTables, port: str, values: Values) -> None:
    missing = [
        f"dcb {command} show dev {port}"
        for command, keys in _KEYS.items()
        if values.keys().isdisjoint(keys)
    ]
    if missing:
        database.tables["DCB"][port] = {"missing": ", ".join(missing)}
        return
    if "pcp-prio" in values:
        text = f"the meaning of pcp-prio (dcb app show dev {port})"
        database.tables["DCB"][port] = {"missing": text}
        return
    try:
        queues, buffers = _shared(values["prio-tc"]), _shared(values["prio-buffer"])
        classes = _classes(values)
        enabled = _enabled(values["prio-pfc"])
    except RuleError as error:
        raise error.within(port) from None
    maps = {
        ("dscp_to_tc_map", "DSCP_TO_TC_MAP"): classes,
        ("tc_to_queue_map", "TC_TO_QUEUE_MAP"): queues,
        ("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP"): buffers,
        ("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE"): queues,
        ("pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"): buffers,
    }
    used = {"pfc_enable": ",".join(map(str, enabled))}
    for (use, table), numbers in maps.items():
        database.tables.setdefault(table, {})[port] = {str(k): str(v) for k, v in numbers.items()}
        used[use] = port
    database.tables.setdefault("PORT_QOS_MAP", {})[port] = used


def _number(text: str, maximum: int, quantity: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and int(text) <= maximum):
        raise RuleError(f"{quantity} {text[:20]!r} must be a number up to {maximum}")
    return int(text)


def _shared(numbers: Mapping[str, str]) -> dict[int, int]:
    """Return for each priority the lowest one with the same traffic class or buffer."""
    value_of = {
        _number(priority, PRIORITIES - 1, "priority"): _number(value, 15, "traffic class")
        for priority, value in numbers.items()
    }
    for priority in range(PRIORITIES):
        if priority not in value_of:
            raise RuleError(f"priority {priority} has no traffic class or buffer")
    return {
        priority: min(p for p in value_of if value_of[p] == value)
        for priority, value in value_of.items()
    }


def _classes(values: Values) -> dict[int, int]:
    """Return the priority of each DSCP: of those not listed, that of the port."""
    default = values.get("default-prio", {"": "0"})[""]
    classes = dict.fromkeys(range(_MAX_DSCP + 1), _number(default, PRIORITIES - 1, "priority"))
    for name, priority in values.get("dscp-prio", {}).items():
        dscp = _DSCPS[name] if name in _DSCPS else _number(name, _MAX_DSCP, "DSCP")
        classes[dscp] = _number(priority, PRIORITIES - 1, "priority")
    return classes


def _enabled(states: Mapping[str, str]) -> list[int]:
    for priority, state in states.items():
        _number(priority, PRIORITIES - 1, "priority")
        if state not in ("on", "off"):
            raise RuleError(f"prio-pfc {priority}:{state[:20]} must be on or off")
    return sorted(int(priority) for priority, state in states.items() if state == "on")


KIND = FileKind(
    "Linux PFC (dcb)",
    "routers",
    _SEARCHED,
    _read,
)
