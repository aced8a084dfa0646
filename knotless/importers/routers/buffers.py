"""Buffers of SONiC switches: what a lossless priority group must hold.

A priority group needs two things. Its *headroom* (``xoff``) holds what still arrives after it has
sent a pause; where it is too small, packets are lost. Its *reserve* (``size``) is room that nobody
else can take; without it, priority groups can wait for each other's buffer although no packets
do, so that the theorem of verdicts does not apply.

Until a pause takes effect, the sender fills the cable, and the frames that are being sent at both
ends are finished: see :func:`headroom_bytes`. The time in which chips respond comes on top; it
depends on the chip, so it is left out here: headroom that is reported as too small is too small
for any chip.

References
----------
IEEE 802.1Q-2018, Annex N (buffer requirements of PFC). SONiC design document "Dynamically headroom
calculation"; sonic-net/sonic-swss, cfgmgr/buffer_headroom_mellanox.lua (198,000,000 m/s).

"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from knotless._core import simulator as core
from knotless.base.printable import listed
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.findings import Findings
from knotless.importers.routers.qos import (
    COMPUTED,
    PRIORITIES,
    PortQos,
    PriorityGroups,
    groups_of,
    port_qos,
)
from knotless.importers.routers.router import Router, natural

METRES_PER_S = 198_000_000
PORT_MTU, LOSSLESS_MTU = 9100, 1024
"""The value that SONiC uses where the tables say nothing."""
_PROFILES = ("BUFFER_PROFILE", "BUFFER_PROFILE_TABLE")
_TABLES = ("BUFFER_PG", "BUFFER_PG_TABLE", *_PROFILES)


def headroom_bytes(length_m: float, rate_mbps: int, port_mtu: int, lossless_mtu: int) -> int:
    """Return the least headroom of a link, in bytes, without the response time of chips.

    It is that of our own switches, for one frame of ``port_mtu`` bytes, and one of
    ``lossless_mtu``.
    """
    delay_ps = round(length_m / METRES_PER_S * 1e12)
    both = [
        core.headroom_bytes(rate_mbps * 1_000_000, delay_ps, mtu)
        for mtu in (port_mtu, lossless_mtu)
    ]
    return sum(both) // 2


def judge_buffers(
    routers: Sequence[Router],
    qos: Mapping[str, Mapping[str, PortQos]],
    peers: Collection[NamedEnd],
    findings: Findings,
) -> None:
    """Add what the buffers of ports lack that lead to other switches (``peers``: their ends)."""
    unknown = [
        router.name for router in routers if not any(router.table(table) for table in _PROFILES)
    ]
    for router in routers:
        if any(router.table(table) for table in _TABLES):
            linked = [port for name, port in peers if name == router.name]
            _judge(router, qos[router.name], sorted(linked, key=natural), findings)
    if unknown:
        findings.note(
            f"no BUFFER_PROFILE of {listed(unknown, 1)}: reserves and headroom are not known"
        )


def _judge(
    router: Router, ports: Mapping[str, PortQos], linked: Sequence[str], findings: Findings
) -> None:
    groups = list(groups_of(router))
    lengths = {
        port: text for row in router.table("CABLE_LENGTH").values() for port, text in row.items()
    }
    # By the mistake and the priority groups, or by the profile: the ports.
    losses: dict[tuple[str, str], list[str]] = {}
    reserves: dict[str, list[str]] = {}
    computed: list[str] = []
    for port in linked:
        settings = port_qos(ports, port)
        pausing = [g for g in range(PRIORITIES) if settings.pauses[g] or g in settings.lossy]
        for row in (row for row in groups if row.port == port):
            used = [group for group in row.groups if group in pausing]
            pausing = [group for group in pausing if group not in used]
            if not used:
                continue
            if row.name == COMPUTED:
                computed.append(port)
            elif mistake := _mistake(router, row):
                losses.setdefault((mistake, _numbers(used)), []).append(port)
            elif row.profile is not None:
                if not _number(row.profile.get("size", "")):
                    reserves.setdefault(row.name, []).append(port)
                small = _small_headroom(router, row, lengths.get(port, ""))
                if small:
                    findings.loss(small)
        if pausing:
            mistake = "which have no lossless BUFFER_PG"
            losses.setdefault((mistake, _numbers(pausing)), []).append(port)
    for (mistake, numbers), where in losses.items():
        findings.loss(
            f"{router.name}: PFC is enabled for priority group {numbers} of {listed(where, 1)},"
            f" {mistake}: packets can be lost"
        )
    for name, where in reserves.items():
        findings.gap(
            f"a reserve (size) in BUFFER_PROFILE|{name[:40]} of {router.name}, for"
            f" {listed(where, 1)}: without it, a shared pool can deadlock"
        )
    if computed:
        findings.note(
            f"{router.name} computes the buffers of {listed(computed, 1)}, which are not in"
            " APPL_DB: reserves and headroom are not known"
        )


def _mistake(router: Router, row: PriorityGroups) -> str:
    """Describe what is wrong with a buffer profile; empty: nothing, or no profiles were read."""
    if row.profile is not None:
        return "" if "xoff" in row.profile else "whose buffer profile has no xoff"
    if not any(router.table(table) for table in _PROFILES):
        return ""
    return f"whose buffer profile {row.name[:40]!r} does not exist"


def _small_headroom(router: Router, lossless: PriorityGroups, length_text: str) -> str | None:
    """Describe headroom that is too small for a cable, or for any where its length is unknown."""
    port, profile = lossless.port, lossless.profile or {}
    fields = router.table("PORT").get(port, {})
    patterns = [row.get("mtu", "") for row in router.table("LOSSLESS_TRAFFIC_PATTERN").values()]
    lossless_mtu = _number(patterns[0]) if patterns else LOSSLESS_MTU
    length, rate = _metres(length_text), _number(fields.get("speed", ""))
    port_mtu = _number(fields.get("mtu", str(PORT_MTU)))
    xoff = profile.get("xoff", "")
    if not xoff.isdecimal() or len(xoff) > 10 or not (port_mtu and lossless_mtu):
        return None
    cable = f"{length:g} m at {rate // 1000} Gb/s" if length and rate else "two frames"
    needed = headroom_bytes(length if rate else 0, rate or 1, port_mtu, lossless_mtu)
    if int(xoff) >= needed or not ((length and rate) or int(xoff) == 0):
        return None
    groups = lossless.groups
    return (
        f"{router.name}:{port}: priority groups {groups[0]} to {groups[-1]} have a headroom"
        f" (xoff) of {int(xoff)} bytes, but {cable} need at least {needed}: packets can be lost"
    )


def _numbers(groups: Sequence[int]) -> str:
    return ", ".join(map(str, groups))


def _number(text: str) -> int:
    """Return a positive number of at most ten digits, otherwise 0."""
    return int(text) if text.isdecimal() and len(text) <= 10 else 0


def _metres(text: str) -> float:
    return float(_number(text.removesuffix("m")))
