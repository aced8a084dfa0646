"""The settings of SONiC switches: pools, buffers, schedulers, marking and watchdog of their tables.

They become :class:`knotless.base.switch_settings.SwitchSettings`, whose priorities are priority
groups at the input and queues at the output. What the tables do not say, such as sizes that a
switch computes and APPL_DB does not have, is left out and listed; nothing is guessed.

Memory that a priority group alone can take is its ``size``, with or without headroom
(:meth:`knotless.importers.sonic.buffer_tables.BufferTables.reserved`). The ``size`` of a pool
includes all that is reserved in it.

References
----------
sonic-net/sonic-buildimage, src/sonic-yang-models (BUFFER_POOL, BUFFER_PROFILE, SCHEDULER,
WRED_PROFILE, PFC_WD). sonic-net/sonic-swss, cfgmgr/buffer_headroom_mellanox.lua. SAI, saibuffer.h.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from knotless.base.complaints import complaint
from knotless.base.printable import MAX_NAME, listed
from knotless.base.switch_settings import (
    EgressGroup,
    IngressGroup,
    Marking,
    Pool,
    PortSettings,
    Scheduled,
    SwitchSettings,
    WatchdogSettings,
)
from knotless.importers.findings import Findings
from knotless.importers.routers.buffers import longest_lossless, needed_headroom
from knotless.importers.routers.qos import port_qos, qos_of
from knotless.importers.routers.router import Router, natural
from knotless.importers.sonic.buffer_tables import (
    COMPUTED,
    BufferedPriorities,
    number,
    ports_and_numbers,
    rows_in_force,
)
from knotless.importers.sonic.database import Fields
from knotless.importers.switch_settings import ReadGroup, ReadSettings, counted

_MARKS_GREEN = {"ecn_green", "ecn_green_yellow", "ecn_green_red", "ecn_all"}
_SCHEDULERS = {"STRICT": True, "DWRR": False}
_SHAPING = ("pir", "cir", "pbs", "cbs")
_MS = 1000
"""Microseconds of a millisecond."""

Part = TypeVar("Part")


def settings_of(router: Router, ports: Mapping[int, Sequence[str]]) -> ReadSettings:
    """Return the settings of a router.

    Parameters
    ----------
    router : Router
        A router with its tables.
    ports : mapping of int to sequence of str
        The names of each port of the fabric: its own, or the members of its VLAN.

    """
    if not any(rows_in_force(router.tables, table) for table in _TABLES):
        return ReadSettings()
    return _Reader(router, ports).read()


_TABLES = ("PORT_QOS_MAP", "BUFFER_POOL", "BUFFER_PROFILE", "QUEUE", "PFC_WD")


class _Reader:
    def __init__(self, router: Router, ports: Mapping[int, Sequence[str]]) -> None:
        self.router, self.ports = router, ports
        self.unknown: dict[str, list[str]] = {}
        self.losses: dict[str, list[str]] = {}
        self.parts: dict[object, Any] = {}
        self.buffers = router.buffers
        self.qos = qos_of(router, Findings())
        self.queues = _queues(router)
        self.pools = dict(self._pools())

    def read(self) -> ReadSettings:
        ports: dict[int, PortSettings] = {}
        for place, names in self.ports.items():
            read = [self._port(name) for name in names if self._is_listed(name)]
            if any(settings != read[0] for settings in read):
                self._leave_out("which settings count of the members of one VLAN or LAG", names[0])
            ports[place] = read[0] if read else PortSettings()
        if self.qos is None:
            self._leave_out("which priorities are lossless: there is no PORT_QOS_MAP", "")
        if any(self._limits_of_ports()):
            self._leave_out("what the limits of whole ports (BUFFER_PORT_*_PROFILE_LIST) do", "")
        common, others = _most_common(ports)
        settings = SwitchSettings(
            **{name: getattr(common, name) for name in PortSettings.model_fields},
            pools=self.pools,
            ports={str(place): own for place, own in others.items()},
        )
        return ReadSettings(
            settings,
            tuple(self._groups()),
            tuple(text + f" ({where})" * bool(where) for text, where in _with_ports(self.unknown)),
            tuple(
                f"{self.router.name}:{where}: {text}" for text, where in _with_ports(self.losses)
            ),
        )

    def _leave_out(self, what: str, port: str) -> None:
        self.unknown.setdefault(what, []).append(port)

    def _is_listed(self, port: str) -> bool:
        buffers, maps = self.buffers, self.router.table("PORT_QOS_MAP")
        tables = (buffers.groups, buffers.queues, self.queues, maps)
        return any(port in ports for ports in tables) or port in (self.qos or {})

    def _pools(self) -> Iterator[tuple[str, Pool]]:
        reserved: Counter[str] = Counter()
        for rows in (*self.buffers.groups.values(), *self.buffers.queues.values()):
            for row in rows:
                if row.profile is not None:
                    reserved[row.profile.pool] += (row.profile.size or 0) * len(row.numbers)
        for name, pool in self.buffers.pools.items():
            size, side = pool.size, pool.side
            if not 0 < len(name) <= MAX_NAME:
                self._leave_out(f"BUFFER_POOL|{name[:40]}, whose name is empty or too long", "")
            elif side not in ("ingress", "egress"):
                self._leave_out(f"the type of BUFFER_POOL|{name[:40]}", "")
            elif not size:
                self._leave_out(f"the size of BUFFER_POOL|{name[:40]}, and the buffers in it", "")
            elif size < reserved[name]:
                self._leave_out(
                    f"the size of BUFFER_POOL|{name[:40]}: {reserved[name]} of {size} bytes are"
                    " reserved",
                    "",
                )
            else:
                headroom = pool.xoff or None if side == "ingress" else None
                read = self._part(
                    Pool, side=side, bytes=size - reserved[name], headroom_bytes=headroom
                )
                if read is not None:
                    yield name, read

    def _port(self, port: str) -> PortSettings:
        values: dict[str, Any] = {
            "ingress": self._shares(port, self.buffers.groups.get(port, ()), IngressGroup),
            "egress": self._shares(port, self.buffers.queues.get(port, ()), EgressGroup),
            "scheduler": self._schedulers(port),
            "ecn": self._marking(port),
            "watchdog": self._watchdog(port),
        }
        if self.qos is not None:
            pauses = port_qos(self.qos, port).pauses
            values["lossless"] = tuple(group for group, sent in enumerate(pauses) if sent)
            rows = self.buffers.groups.get(port, ())
            if not {*values["lossless"]} <= {group for row in rows for group in row.numbers}:
                self._leave_out("the BUFFER_PG of lossless priorities", port)
        return PortSettings(**values)

    def _shares(
        self, port: str, rows: Sequence[BufferedPriorities], kind: type[IngressGroup | EgressGroup]
    ) -> tuple[IngressGroup | EgressGroup, ...]:
        taken: set[int] = set()
        of_profile: dict[str, tuple[BufferedPriorities, list[int]]] = {}
        for row in rows:
            free = [place for place in row.numbers if place not in taken]
            taken |= {*free}
            of_profile.setdefault(row.name, (row, []))[1].extend(free)
        shares = []
        for row, priorities in of_profile.values():
            share = self._share(port, row, priorities, kind) if priorities else None
            if share is not None:
                shares.append(share)
        return tuple(shares)

    def _share(
        self,
        port: str,
        row: BufferedPriorities,
        priorities: Sequence[int],
        kind: type[IngressGroup | EgressGroup],
    ) -> IngressGroup | EgressGroup | None:
        """Return the share of priorities with one profile; None if it is not known."""
        profile = row.profile
        if profile is None:
            what = f"BUFFER_PROFILE|{row.name[:40]}"
            if row.name == COMPUTED:
                what = "buffers that the switch computes, which are not in APPL_DB"
            self._leave_out(what, port)
            return None
        pool = self.pools.get(profile.pool)
        if pool is None or pool.side != ("ingress" if kind is IngressGroup else "egress"):
            if profile.pool not in self.buffers.pools:
                self._leave_out(f"the pool of BUFFER_PROFILE|{row.name[:40]}", port)
            return None
        values: dict[str, Any] = {
            "priorities": tuple(sorted(priorities)),
            "pool": profile.pool,
            "reserved_bytes": self.buffers.reserved(profile),
        }
        if profile.alpha is not None:
            values["alpha"] = profile.alpha
        elif profile.limit is not None:
            values["limit_bytes"] = profile.limit
        if kind is IngressGroup and profile.is_lossless:
            values["headroom_bytes"] = profile.xoff or 0
            if profile.resume_offset is not None:
                values["resume_offset_bytes"] = profile.resume_offset
        return self._part(kind, **values)

    def _schedulers(self, port: str) -> tuple[Scheduled, ...]:
        chosen = []
        for queue, fields in self.queues.get(port, {}).items():
            name = fields.get("scheduler", "")
            if not name:
                continue
            row = rows_in_force(self.router.tables, "SCHEDULER").get(name)
            strict = _SCHEDULERS.get((row or {}).get("type", ""))
            if row is None or strict is None:
                self._leave_out(f"the type (STRICT or DWRR) of SCHEDULER|{name[:40]}", port)
                continue
            if any(number(row.get(rate, "")) for rate in _SHAPING):
                self._leave_out(f"the rates (pir, cir) of SCHEDULER|{name[:40]}", port)
            weight = None if strict else number(row.get("weight", "1"))
            scheduled = self._part(Scheduled, priorities=(queue,), strict=strict, weight=weight)
            if scheduled is not None:
                chosen.append(scheduled)
        return tuple(chosen)

    def _marking(self, port: str) -> tuple[Marking, ...]:
        marking = []
        lossless = self._lossless_queues(port)
        for queue, fields in self.queues.get(port, {}).items():
            name = fields.get("wred_profile", "")
            if not name:
                continue
            profile = self.router.table("WRED_PROFILE").get(name)
            if profile is None:
                self._leave_out(f"WRED_PROFILE|{name[:40]}", port)
                continue
            ecn = profile.get("ecn", "ecn_none")
            if ecn not in _MARKS_GREEN:
                if profile.get("wred_green_enable") == "true" and queue in lossless:
                    what = (
                        f"queue {queue} is lossless, but WRED_PROFILE|{name[:40]} drops its packets"
                        f" (ecn {ecn[:20]}); set ecn to ecn_all, or remove it"
                    )
                    self.losses.setdefault(what, []).append(port)
                continue
            least, most, percent = (
                profile.get(f"green_{what}", "")
                for what in ("min_threshold", "max_threshold", "drop_probability")
            )
            if not (least.isdecimal() and number(most) and number(percent)):
                self._leave_out(f"the thresholds and probability of WRED_PROFILE|{name[:40]}", port)
                continue
            marked = self._part(
                Marking,
                priorities=(queue,),
                kmin_bytes=number(least),
                kmax_bytes=number(most),
                pmax=number(percent) / 100,
            )
            if marked is not None:
                marking.append(marked)
        return tuple(marking)

    def _lossless_queues(self, port: str) -> set[int]:
        if self.qos is None:
            return set()
        settings = port_qos(self.qos, port)
        paused = frozenset[int]().union(*settings.pauses) & settings.obeys
        return {settings.stopped[priority] for priority in paused}

    def _watchdog(self, port: str) -> WatchdogSettings | None:
        rows = self.router.table("PFC_WD")
        row = next((row for key, row in rows.items() if port in key.split(",")), None)
        if row is None:
            return None
        detection = number(row.get("detection_time", ""))
        restoration = number(row.get("restoration_time", ""))
        if not detection:
            self._leave_out("the detection_time of PFC_WD", port)
            return None
        polling = number(rows.get("GLOBAL", {}).get("POLL_INTERVAL", ""))
        maps = self.router.table("PORT_QOS_MAP")
        of_port = next((row for key, row in maps.items() if port in key.split(",")), {})
        texts = [text for text in of_port.get("pfcwd_sw_enable", "").split(",") if text]
        watched = tuple(sorted({number(text) for text in texts}))
        return self._part(
            WatchdogSettings,
            detection_us=detection * _MS,
            restoration_us=restoration * _MS if restoration else None,
            restored_by="frames",
            action=row.get("action", "drop"),
            polling_us=polling * _MS if polling else None,
            priorities=watched or None,
        )

    def _limits_of_ports(self) -> Iterator[bool]:
        """Yield for each profile of a whole port and pool whether it limits the port."""
        for profile in self.buffers.limits_of_ports:
            if profile is None or profile.alpha is not None or not profile.limit:
                yield True
            else:
                pool = self.buffers.pools.get(profile.pool)
                yield pool is not None and profile.limit < (pool.size or 0)

    def _groups(self) -> Iterator[ReadGroup]:
        frame = longest_lossless(self.router)
        for place, names in self.ports.items():
            for port in names:
                needs = needed_headroom(self.router, port)
                pauses = () if self.qos is None else port_qos(self.qos, port).pauses
                seen: set[int] = set()
                for row in self.buffers.groups.get(port, ()):
                    for priority in (group for group in row.numbers if group not in seen):
                        seen.add(priority)
                        profile = row.profile
                        if profile is not None:
                            yield ReadGroup(
                                place,
                                priority,
                                profile.pool or None,
                                None if profile.size is None else self.buffers.reserved(profile),
                                frame,
                                needs[0] if needs and needs[1] else None,
                                bool(pauses and pauses[priority]),
                            )

    def _part(self, kind: type[Part], **values: Any) -> Part | None:
        """Return a part of settings, one for the same values; None if it is not possible."""
        key = (kind, *values.items())
        if key not in self.parts:
            try:
                self.parts[key] = kind(**values)
            except ValidationError as error:
                self._leave_out(f"{kind.__name__}: {complaint(error)}", "")
                self.parts[key] = None
        part: Part | None = self.parts[key]
        return part


def _queues(router: Router) -> dict[str, dict[int, Fields]]:
    """Return the rows of QUEUE by port and queue."""
    queues: dict[str, dict[int, Fields]] = {}
    for key, fields in rows_in_force(router.tables, "QUEUE").items():
        for port, numbers in ports_and_numbers(key):
            for queue in numbers:
                queues.setdefault(port, {}).setdefault(queue, {}).update(fields)
    return {port: dict(sorted(rows.items())) for port, rows in queues.items()}


def _most_common(ports: Mapping[int, PortSettings]) -> tuple[PortSettings, dict[int, PortSettings]]:
    """Return what most ports have, and of others what differs.

    A port cannot say that it has no watchdog, so this stands at the switch only if all have it.
    """
    common: dict[str, Any] = {}
    for name in PortSettings.model_fields:
        values = counted(getattr(settings, name) for settings in ports.values())
        value, count = max(values, key=lambda row: row[1], default=(None, 0))
        if name != "watchdog" or count == len(ports):
            common[name] = value
    top = PortSettings(**common)
    others = {}
    for place, settings in ports.items():
        own: dict[str, Any] = {
            name: value if value is not None else ()
            for name, value in settings
            if value != getattr(top, name) and not (value is None and name == "watchdog")
        }
        if own:
            others[place] = PortSettings(**own)
    return top, others


def _with_ports(texts: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield each text with the ports that it is about: the first, and how many more."""
    for text, ports in texts.items():
        yield text, listed(sorted({port for port in ports if port}, key=natural), 1)
