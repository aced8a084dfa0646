"""Priorities and PFC of a SONiC switch: from DSCP to queue and priority group, and what pauses.

A packet's DSCP, or at ports that trust it the PCP of its VLAN tag, gives its traffic class (by the
map of the input port), which gives the queue at the output (map of the output port) and the
priority group, the buffer at the input (map of the input port). A priority group that fills up
pauses its priorities, where PFC is enabled; a paused priority stops a queue of the sender. Ports
without a map use class, queue and priority group 0, as the Switch Abstraction Interface defines. An
output port can give packets another DSCP, by class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from knotless.base.errors import RuleError
from knotless.base.model_limits import PRIORITIES
from knotless.importers.findings import Findings
from knotless.importers.routers.router import Router
from knotless.importers.sonic.database import Fields

DSCPS, CLASSES = 64, 16
MARKS = PRIORITIES * DSCPS
"""The number of marks: of what a packet carries, ``PCP * DSCPS + DSCP``."""
MAX_QUEUE = 15
_FIELDS = {
    "dscp_to_tc_map": "DSCP_TO_TC_MAP",
    "dot1p_to_tc_map": "DOT1P_TO_TC_MAP",
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
INTERPRETED = {
    "dscp_to_tc_map",
    "dot1p_to_tc_map",
    "tc_to_queue_map",
    "tc_to_pg_map",
    "pfc_to_queue_map",
    "pfc_to_pg_map",
    "tc_to_dscp_map",
    "pfc_enable",
}
WITHOUT_EFFECT = {"pfcwd_sw_enable", "scheduler", "NULL", ""}
"""Fields that change neither the priority of a packet nor what pauses: the priorities that the
watchdog watches, and rates."""

Map = tuple[int, ...]


@dataclass(frozen=True)
class PortQos:
    """The maps of a port: TC by mark, queue and priority group by TC; and its PFC.

    ``remarks`` is the DSCP by TC that packets leave with, None: they keep theirs. ``pauses`` are
    the priorities that each priority group pauses, ``obeys`` the priorities whose pauses stop a
    queue, ``stopped`` the queue that each stops. ``lossy`` are priority groups with PFC that send
    no pause, since their buffer profile has no ``xoff``.
    """

    classes: Map
    queues: Map
    groups: Map
    pauses: tuple[frozenset[int], ...]
    obeys: frozenset[int]
    stopped: Map
    remarks: Map | None = None
    trusts_pcp: bool = False
    lossy: frozenset[int] = frozenset()

    @cached_property
    def lossless_marks(self) -> frozenset[int]:
        """The marks whose packets the port does not drop for lack of buffer."""
        return frozenset(m for m in range(MARKS) if self.pauses[self.groups[self.classes[m]]])


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
        if name not in INTERPRETED | WITHOUT_EFFECT:
            findings.unclear(
                f"what {name} of PORT_QOS_MAP does at {router.host}",
                router.source.cause("PORT_QOS_MAP", name),
            )
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
        findings.unclear(
            f"{_FIELDS[field]}|{name} of {router.host}", router.source.cause("PORT_QOS_MAP", field)
        )
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
        self._maps: dict[tuple[str, str], Map] = {}
        self._settings: dict[PortQos, PortQos] = {}

    def map(self, fields: Fields, field: str, size: int, maximum: int, identity: bool) -> Map:
        """Return the map that a port names; where it says nothing, 0 or the same number."""
        key = (field, fields.get(field, ""))
        if key not in self._maps:  # most ports name the same
            named = number_map(self.router, fields, field, size, maximum, self.findings, identity)
            self._maps[key] = named or (tuple(range(size)) if identity else (0,) * size)
        return self._maps[key]

    def port(self, port: str, fields: Fields) -> PortQos:
        enabled = self.priorities(port, fields)
        to_group = self.map(fields, "pfc_to_pg_map", PRIORITIES, PRIORITIES - 1, True)
        pauses, lossy = [], set()
        for group in range(PRIORITIES):
            sent = frozenset(p for p in enabled if to_group[p] == group)
            if sent and (port, group) in self.lossy:
                lossy.add(group)
                sent = frozenset()
            pauses.append(sent)
        asymmetric = self.router.table("PORT").get(port, {}).get("pfc_asym") == "on"
        settings = PortQos(
            self.classes(fields),
            self.map(fields, "tc_to_queue_map", CLASSES, MAX_QUEUE, False),
            self.map(fields, "tc_to_pg_map", CLASSES, PRIORITIES - 1, False),
            tuple(pauses),
            frozenset(range(PRIORITIES)) if asymmetric else enabled,
            self.map(fields, "pfc_to_queue_map", PRIORITIES, MAX_QUEUE, True),
            self.remarks(fields),
            bool(fields.get("dot1p_to_tc_map")) and not fields.get("dscp_to_tc_map"),
            frozenset(lossy),
        )
        return self._settings.setdefault(settings, settings)

    def classes(self, fields: Fields) -> Map:
        """Return the class by mark: by the DSCP, or by the PCP where a port has only its map."""
        by_dscp = self.map(fields, "dscp_to_tc_map", DSCPS, CLASSES - 1, False)
        if not fields.get("dot1p_to_tc_map"):
            return by_dscp * PRIORITIES
        by_pcp = self.map(fields, "dot1p_to_tc_map", PRIORITIES, CLASSES - 1, False)
        if fields.get("dscp_to_tc_map"):
            self.findings.unclear(
                f"which of dscp_to_tc_map and dot1p_to_tc_map counts at {self.router.host}",
                self.router.source.cause("PORT_QOS_MAP", "dscp_to_tc_map"),
                self.router.source.cause("PORT_QOS_MAP", "dot1p_to_tc_map"),
            )
            return by_dscp * PRIORITIES
        self.findings.note(
            "ports trust the PCP of VLAN tags (dot1p_to_tc_map): packets are taken to keep theirs",
            self.router.source.cause("PORT_QOS_MAP", "dot1p_to_tc_map"),
        )
        return tuple(by_pcp[mark // DSCPS] for mark in range(MARKS))

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
                    f"the DSCP of class {tc} in TC_TO_DSCP_MAP|{name} of {self.router.host}",
                    self.router.source.cause("TC_TO_DSCP_MAP", name),
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
        for port, rows in router.buffers.groups.items()
        for row in rows
        if row.profile is not None and not row.profile.is_lossless
        for group in row.numbers
    }


def mark_text(mark: int, ports: Iterable[PortQos]) -> str:
    """Return what a packet carries as text, as far as ``ports`` look at it."""
    trusted = {port.trusts_pcp for port in ports}
    texts = [f"DSCP {mark % DSCPS}"] * (trusted != {True}) + [f"PCP {mark // DSCPS}"] * any(trusted)
    return ", ".join(texts)


def port_qos(of_switch: Mapping[str, PortQos], port: str) -> PortQos:
    """Return the settings of a port."""
    return of_switch.get(port, of_switch[""])
