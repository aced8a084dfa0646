"""Priorities and PFC of a SONiC switch: from DSCP to queue and priority group, and what pauses.

A packet's DSCP gives its traffic class (by the map of the input port), which gives the queue at the
output (map of the output port) and the priority group, the buffer at the input (map of the input
port). A priority group that fills up pauses its priorities, where PFC is enabled; a paused priority
stops a queue of the sender. Ports without a map use class, queue and priority group 0, as
the Switch Abstraction Interface defines. An output port can give packets another DSCP, by class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from knotless.base.errors import RuleError
from knotless.importers.findings import Findings
from knotless.importers.routers.router import Router
from knotless.importers.sonic.database import Fields

DSCPS, CLASSES, PRIORITIES = 64, 16, 8
MAX_QUEUE = 15
_FIELDS = {
    "dscp_to_tc_map": "DSCP_TO_TC_MAP",
    "tc_to_queue_map": "TC_TO_QUEUE_MAP",
    "tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
    "pfc_to_queue_map": "MAP_PFC_PRIORITY_TO_QUEUE",
    "pfc_to_pg_map": "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "tc_to_dscp_map": "TC_TO_DSCP_MAP",
    "encap_tc_to_dscp_map": "TC_TO_DSCP_MAP",
    "encap_tc_color_to_dscp_map": "TC_TO_DSCP_MAP",
    "encap_tc_to_queue_map": "TC_TO_QUEUE_MAP",
    "decap_dscp_to_tc_map": "DSCP_TO_TC_MAP",
    "decap_tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
}
_PORT_FIELDS = {
    "dscp_to_tc_map",
    "tc_to_queue_map",
    "tc_to_pg_map",
    "pfc_to_queue_map",
    "pfc_to_pg_map",
    "tc_to_dscp_map",
    "pfc_enable",
    "pfcwd_sw_enable",
    "scheduler",
    "dot1p_to_tc_map",
    "NULL",
    "",
}

Map = tuple[int, ...]


@dataclass(frozen=True)
class PortQos:
    """The maps of a port: TC by DSCP, queue and priority group by TC; and its PFC.

    ``remarks`` is the DSCP by TC that packets leave with, None: they keep theirs. ``pauses`` are
    the priorities that each priority group pauses, ``obeys`` the priorities whose pauses stop a
    queue, ``stopped`` the queue that each stops.
    """

    classes: Map
    queues: Map
    groups: Map
    pauses: tuple[frozenset[int], ...]
    obeys: frozenset[int]
    stopped: Map
    remarks: Map | None = None

    @cached_property
    def lossless_dscps(self) -> frozenset[int]:
        """The DSCPs whose packets the port does not drop for lack of buffer."""
        return frozenset(d for d in range(DSCPS) if self.pauses[self.groups[self.classes[d]]])


def qos_of(router: Router, findings: Findings) -> dict[str, PortQos] | None:
    """Return the settings by port, and for ``""`` those of ports that are not listed.

    None if the switch has no table of them.
    """
    of_ports = router.table("PORT_QOS_MAP")
    if not of_ports:
        return None
    common = of_ports.get("global", {})
    reader = _Reader(router, findings)
    settings = {"": reader.port("", common)}
    for key, fields in of_ports.items():
        for port in key.split(","):
            if port != "global":
                settings[port] = reader.port(port, {**common, **fields})
    for name in sorted({used for fields in of_ports.values() for used in fields}):
        if name not in _PORT_FIELDS:
            findings.unclear(f"what {name} of PORT_QOS_MAP does at {router.name}")
    return settings


def number_map(
    router: Router,
    fields: Fields,
    field: str,
    size: int,
    maximum: int,
    findings: Findings,
    identity: bool = False,
) -> Map | None:
    """Return the map that ``field`` names, from 0..size-1 to 0..most; None if it names none.

    Numbers that are not in the map become 0, or stay the same if ``identity``.
    """
    name = fields.get(field, "")
    if not name:
        return None
    rows = router.table(_FIELDS[field]).get(name)
    if rows is None:
        findings.unclear(f"{_FIELDS[field]}|{name} of {router.name}")
        return None
    numbers = [number if identity else 0 for number in range(size)]
    for key, value in rows.items():
        if key.isdecimal() and value.isdecimal() and int(key) < size and int(value) <= maximum:
            numbers[int(key)] = int(value)
        elif key != "NULL":
            place = f"{router.name}: {_FIELDS[field]}|{name}"
            raise RuleError(f"{place}: {key[:20]!r}: {value[:20]!r} is out of range")
    return tuple(numbers)


class _Reader:
    def __init__(self, router: Router, findings: Findings) -> None:
        self.router, self.findings = router, findings
        self.lossy = _lossy_groups(router)

    def map(self, fields: Fields, field: str, size: int, maximum: int, identity: bool) -> Map:
        """Return the map that a port names; where it says nothing, 0 or the same number."""
        named = number_map(self.router, fields, field, size, maximum, self.findings, identity)
        return named or (tuple(range(size)) if identity else (0,) * size)

    def port(self, port: str, fields: Fields) -> PortQos:
        enabled = self.priorities(port, fields)
        to_group = self.map(fields, "pfc_to_pg_map", PRIORITIES, PRIORITIES - 1, True)
        pauses = []
        for group in range(PRIORITIES):
            sent = frozenset(p for p in enabled if to_group[p] == group)
            if sent and (port, group) in self.lossy:
                self.findings.note(
                    f"{self.router.name}: {port} has PFC for priority group {group}, whose buffer"
                    " profile has no xoff"
                )
                sent = frozenset()
            pauses.append(sent)
        asymmetric = self.router.table("PORT").get(port, {}).get("pfc_asym") == "on"
        return PortQos(
            self.map(fields, "dscp_to_tc_map", DSCPS, CLASSES - 1, False),
            self.map(fields, "tc_to_queue_map", CLASSES, MAX_QUEUE, False),
            self.map(fields, "tc_to_pg_map", CLASSES, PRIORITIES - 1, False),
            tuple(pauses),
            frozenset(range(PRIORITIES)) if asymmetric else enabled,
            self.map(fields, "pfc_to_queue_map", PRIORITIES, MAX_QUEUE, True),
            self.remarks(fields),
        )

    def remarks(self, fields: Fields) -> Map | None:
        """Return the DSCP by class that a port gives packets; every class in use must have one."""
        remarks = number_map(
            self.router, fields, "tc_to_dscp_map", CLASSES, DSCPS - 1, self.findings
        )
        if remarks is not None:
            name = fields["tc_to_dscp_map"]
            maps = self.router.table("DSCP_TO_TC_MAP").values()
            used = {tc for mapping in maps for tc in mapping.values() if tc.isdecimal()}
            missing = used - self.router.table("TC_TO_DSCP_MAP")[name].keys()
            for tc in sorted(missing, key=int)[:1]:
                self.findings.unclear(
                    f"the DSCP of class {tc} in TC_TO_DSCP_MAP|{name} of {self.router.name}"
                )
        return remarks

    def priorities(self, port: str, fields: Fields) -> frozenset[int]:
        texts = [text for text in fields.get("pfc_enable", "").split(",") if text]
        if not all(text.isdecimal() and int(text) < PRIORITIES for text in texts):
            raise RuleError(
                f"{self.router.name}: PORT_QOS_MAP|{port}: pfc_enable must list priorities 0 to 7"
            )
        return frozenset(map(int, texts))


def _lossy_groups(router: Router) -> set[tuple[str, int]]:
    """Return the (port, priority group) whose buffer profile is known and has no ``xoff``."""
    return {
        (port, group)
        for port, groups, profile in groups_of(router)
        if "xoff" not in profile
        for group in groups
    }


def groups_of(router: Router) -> Iterator[tuple[str, range, Fields]]:
    """Yield ports with priority groups whose buffer profile is known, and this profile."""
    profiles = router.table("BUFFER_PROFILE")
    for key, fields in router.table("BUFFER_PG").items():
        ports, _, groups = key.rpartition("|")
        profile = profiles.get(fields.get("profile", ""))
        first, _, last = groups.partition("-")
        numbers = [int(text) for text in (first, last) if text.isdecimal() and len(text) < 4]
        if profile is None or not first.isdecimal() or not numbers:
            continue
        of_profile = range(numbers[0], min(numbers[-1], PRIORITIES - 1) + 1)
        for port in ports.split(","):
            if of_profile:
                yield port, of_profile, profile


def port_qos(of_switch: Mapping[str, PortQos], port: str) -> PortQos:
    """Return the settings of a port."""
    return of_switch.get(port, of_switch[""])
