"""The buffer tables of a SONiC switch: pools, profiles, and who has which profile.

Rows of APPL_DB (``BUFFER_PG_TABLE``) are in force, and replace those of CONFIG_DB (``BUFFER_PG``).

References
----------
sonic-net/sonic-buildimage, src/sonic-yang-models (BUFFER_POOL, BUFFER_PROFILE, BUFFER_PG,
BUFFER_QUEUE, BUFFER_PORT_INGRESS_PROFILE_LIST). SAI, saibuffer.h.

"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from knotless.base.model_limits import PRIORITIES
from knotless.importers.sonic.database import Fields

COMPUTED = "NULL"
"""The name of the buffer profile of priority groups that the switch computes."""
_EXPONENT = re.compile(r"-?\d{1,2}")

Tables = Mapping[str, Mapping[str, Fields]]


@dataclass(frozen=True)
class BufferPool:
    """A pool: its ``side`` (``ingress`` or ``egress``) and its bytes; None where not a number."""

    side: str
    size: int | None
    xoff: int | None


@dataclass(frozen=True)
class BufferProfile:
    """A buffer profile, in bytes; None where a field is missing or not a number.

    ``pool`` is the name of its pool, empty if there is none. ``size`` is the reserve, ``xoff`` the
    headroom, ``resume_offset`` (``xon_offset``) how far below XOFF a sender resumes. The limit is
    ``alpha`` (``2**dynamic_th``) times what is free in the pool, or ``limit`` (``static_th``).
    """

    pool: str
    size: int | None
    xoff: int | None
    resume_offset: int | None
    alpha: float | None
    limit: int | None
    is_lossless: bool
    """Whether it has a field ``xoff``: other priority groups drop and do not pause."""


@dataclass(frozen=True)
class BufferedPriorities:
    """Priority groups, or queues, of a port with the name of their buffer profile.

    ``profile`` is None if there is none of that name.
    """

    port: str
    numbers: range
    name: str
    profile: BufferProfile | None


@dataclass(frozen=True)
class BufferTables:
    """The buffers of a switch.

    ``groups`` (priority groups) and ``queues`` are by port; the last rows of a port are those whose
    profile the switch computes (:data:`COMPUTED`) and APPL_DB does not have.
    ``limits_of_ports`` are the profiles that limit a whole port in a pool, None for each that does
    not exist. ``lists_groups`` is true if there is a table of priority groups, though perhaps of no
    port.
    """

    pools: Mapping[str, BufferPool]
    profiles: Mapping[str, BufferProfile]
    groups: Mapping[str, tuple[BufferedPriorities, ...]]
    queues: Mapping[str, tuple[BufferedPriorities, ...]]
    limits_of_ports: frozenset[BufferProfile | None]
    lists_groups: bool

    def reserved(self, profile: BufferProfile) -> int:
        """Return the bytes that a priority group of a profile alone can take, without headroom.

        Where its pool has no headroom (``xoff``) to share and ``size`` is not below the ``xoff`` of
        the profile, ``size`` includes that headroom, as with the buffer model of Mellanox.
        """
        size, xoff = profile.size or 0, profile.xoff or 0
        pool = self.pools.get(profile.pool)
        return size - xoff if pool is not None and not pool.xoff and size >= xoff else size


def read_buffers(tables: Tables) -> BufferTables:
    """Return the buffers that the tables of a switch describe."""
    profiles = {
        name: _profile(fields) for name, fields in rows_in_force(tables, "BUFFER_PROFILE").items()
    }
    lists = [
        fields.get("profile_list", "").split(",")
        for side in ("INGRESS", "EGRESS")
        for fields in rows_in_force(tables, f"BUFFER_PORT_{side}_PROFILE_LIST").values()
    ]
    groups = rows_in_force(tables, "BUFFER_PG")
    return BufferTables(
        {
            name: BufferPool(fields.get("type", ""), _bytes(fields, "size"), _bytes(fields, "xoff"))
            for name, fields in rows_in_force(tables, "BUFFER_POOL").items()
        },
        profiles,
        _by_port(groups, profiles),
        _by_port(rows_in_force(tables, "BUFFER_QUEUE"), profiles),
        frozenset(profiles.get(name) for names in lists for name in names if name),
        bool(groups),
    )


def _profile(fields: Fields) -> BufferProfile:
    exponent = fields.get("dynamic_th", "")
    return BufferProfile(
        fields.get("pool", ""),
        _bytes(fields, "size"),
        _bytes(fields, "xoff"),
        _bytes(fields, "xon_offset"),
        2.0 ** int(exponent) if _EXPONENT.fullmatch(exponent) else None,
        _bytes(fields, "static_th"),
        "xoff" in fields,
    )


def _by_port(
    rows: Mapping[str, Fields], profiles: Mapping[str, BufferProfile]
) -> dict[str, tuple[BufferedPriorities, ...]]:
    ports: dict[str, list[BufferedPriorities]] = {}
    named = [(key, fields.get("profile", COMPUTED)) for key, fields in rows.items()]
    for key, name in sorted(named, key=lambda row: row[1] == COMPUTED):
        for port, numbers in ports_and_numbers(key):
            row = BufferedPriorities(port, numbers, name, profiles.get(name))
            ports.setdefault(port, []).append(row)
    return {port: tuple(listed) for port, listed in ports.items()}


def rows_in_force(tables: Tables, name: str) -> dict[str, Fields]:
    """Return the rows of a table of CONFIG_DB, replaced by those that APPL_DB has of it."""
    rows = {**tables.get(name, {})}
    for key, fields in tables.get(f"{name}_TABLE", {}).items():
        rows[key.replace(":", "|")] = fields
    return rows


def ports_and_numbers(key: str) -> Iterator[tuple[str, range]]:
    """Yield each port of a key such as ``Ethernet0,Ethernet4|3-4``, with its numbers up to 7."""
    ports, _, groups = key.rpartition("|")
    first, _, last = groups.partition("-")
    numbers = [int(text) for text in (first, last) if text.isdecimal() and len(text) < 4]
    if not first.isdecimal() or not numbers:
        return
    listed = range(numbers[0], min(numbers[-1], PRIORITIES - 1) + 1)
    for port in ports.split(",") if listed else ():
        yield port, listed


def number(text: str) -> int:
    """Return a positive number of at most ten digits, otherwise 0."""
    return _number_or_none(text) or 0


def _bytes(fields: Fields, name: str) -> int | None:
    return _number_or_none(fields.get(name, ""))


def _number_or_none(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= 10 else None
