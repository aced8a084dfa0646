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

from collections.abc import Collection, Iterator, Mapping, Sequence

from knotless._core import simulator as core
from knotless.base.model_limits import PRIORITIES
from knotless.base.printable import listed
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.causes import Cause
from knotless.importers.findings import Findings
from knotless.importers.routers.qos import MARKS, PortQos, port_qos
from knotless.importers.routers.router import Router, natural
from knotless.importers.sonic.buffer_tables import COMPUTED, BufferedPriorities, number

METRES_PER_S = 198_000_000
PORT_MTU = 9100
LOSSLESS_MTU = 1024
"""The values that SONiC uses where the tables say nothing."""


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
    unknown = [router.name for router in routers if not router.buffers.profiles]
    waits_for_pools = False
    for router in routers:
        if router.buffers.lists_groups or router.buffers.profiles:
            linked = [port for name, port in peers if name == router.name]
            ports = sorted(linked, key=natural)
            waits_for_pools |= _judge(router, qos[router.name], ports, findings)
    if waits_for_pools:
        for text, end in _lossy_in_paused_queues(qos, peers):
            findings.gap(text, findings.cause(end[0], "PORT_QOS_MAP", end[1]))
    if unknown:
        findings.note(
            f"no BUFFER_PROFILE of {listed(unknown, 1)}: reserves and headroom are not known",
            findings.cause(unknown[0]),
        )


def _judge(
    router: Router, ports: Mapping[str, PortQos], linked: Sequence[str], findings: Findings
) -> bool:
    """Add what the buffers of a router lack; return whether some wait for room in a pool."""
    # By the mistake and the priority groups, or by the profile: the ports.
    losses: dict[tuple[str, str], list[str]] = {}
    causes: dict[tuple[str, str], list[Cause]] = {}
    reserves: dict[tuple[str, str], list[str]] = {}
    computed: list[str] = []
    for port in linked:
        settings = port_qos(ports, port)
        pausing = [g for g in range(PRIORITIES) if settings.pauses[g] or g in settings.lossy]
        for row in router.buffers.groups.get(port, ()):
            used = [group for group in row.numbers if group in pausing]
            pausing = [group for group in pausing if group not in used]
            if not used:
                continue
            if row.name == COMPUTED:
                computed.append(port)
            elif mistake := _mistake(router, row):
                losses.setdefault((mistake, _numbers(used)), []).append(port)
                causes.setdefault((mistake, _numbers(used)), _causes(router, port, row))
            elif row.profile is not None:
                if not row.profile.size:
                    pool = "" if row.profile.size is None else row.profile.pool
                    reserves.setdefault((row.name, pool), []).append(port)
                small = _small_headroom(router, row)
                if small:
                    findings.loss(small, *_causes(router, port, row))
        if pausing:
            mistake = "which have no lossless BUFFER_PG"
            losses.setdefault((mistake, _numbers(pausing)), []).append(port)
            causes.setdefault((mistake, _numbers(pausing)), [_pfc(router, port)])
    for (mistake, numbers), where in losses.items():
        findings.loss(
            f"{router.name}: PFC is enabled for priority group {numbers} of {listed(where, 1)},"
            f" {mistake}: packets can be lost",
            *causes[mistake, numbers],
        )
    for (name, pool), where in reserves.items():
        cause = router.source.cause("BUFFER_PROFILE", name)
        reserve = f"reserve (size) in BUFFER_PROFILE|{name[:40]} of {router.name}"
        if pool:
            findings.note(
                f"no {reserve}, for {listed(where, 1)}: waits for room in the pool {pool[:40]} are"
                " followed, but not after failures",
                cause,
            )
        else:
            findings.gap(
                f"a {reserve}, for {listed(where, 1)}: without it, a shared pool can deadlock",
                cause,
            )
    if computed:
        findings.note(
            f"{router.name} computes the buffers of {listed(computed, 1)}, which are not in"
            " APPL_DB: reserves and headroom are not known",
            router.source.cause("BUFFER_PG", computed[0]),
        )
    return any(pool for _, pool in reserves)


def _pfc(router: Router, port: str) -> Cause:
    return router.source.cause("PORT_QOS_MAP", port)


def _causes(router: Router, port: str, row: BufferedPriorities) -> list[Cause]:
    """Return where the buffer of priority groups is configured, and its profile."""
    first, last = row.numbers[0], row.numbers[-1]
    key = f"{port}|{first}" if first == last else f"{port}|{first}-{last}"
    causes = [router.source.cause("BUFFER_PG", key)]
    if row.profile is not None:
        causes.append(router.source.cause("BUFFER_PROFILE", row.name))
    return causes


def _lossy_in_paused_queues(
    qos: Mapping[str, Mapping[str, PortQos]], peers: Collection[NamedEnd]
) -> Iterator[tuple[str, NamedEnd]]:
    """Yield a port of each router that sends lossy packets in a queue that pauses stop.

    Packets that no port keeps lossless are not followed, but hold pools while such a queue stands.
    """
    every = {settings for ports in qos.values() for settings in ports.values()}
    lossy = set(range(MARKS)).difference(*(settings.lossless_marks for settings in every))
    for name, ports in qos.items():
        maps = {settings.classes for settings in ports.values()}
        for port in sorted((port for router, port in peers if router == name), key=natural):
            out = port_qos(ports, port)
            stopped = {out.stopped[priority] for priority in out.obeys}
            queues = {out.queues[classes[mark]] for classes in maps for mark in lossy}
            if stopped & queues:
                yield (
                    f"what lossy packets fill at {name}: {port} sends them in queue"
                    f" {min(stopped & queues)}, which pauses stop",
                    (name, port),
                )
                break


def _mistake(router: Router, row: BufferedPriorities) -> str:
    """Describe what is wrong with a buffer profile; empty: nothing, or no profiles were read."""
    if row.profile is not None:
        return "" if row.profile.is_lossless else "whose buffer profile has no xoff"
    if not router.buffers.profiles:
        return ""
    return f"whose buffer profile {row.name[:40]!r} does not exist"


def longest_lossless(router: Router) -> int:
    """Return the longest packet of lossless traffic, in bytes; 0 if it is no number."""
    patterns = [row.get("mtu", "") for row in router.table("LOSSLESS_TRAFFIC_PATTERN").values()]
    return number(patterns[0]) if patterns else LOSSLESS_MTU


def needed_headroom(router: Router, port: str) -> tuple[int, str] | None:
    """Return the least headroom of a port, and for what; None if its packets have no length.

    If length or rate of its cable are not known, it is that of any cable.
    """
    fields = router.table("PORT").get(port, {})
    texts = [row[port] for row in router.table("CABLE_LENGTH").values() if port in row]
    length, rate = _metres(texts[-1] if texts else ""), number(fields.get("speed", ""))
    port_mtu, lossless_mtu = number(fields.get("mtu", str(PORT_MTU))), longest_lossless(router)
    if not (port_mtu and lossless_mtu):
        return None
    if not (length and rate):
        return headroom_bytes(0, 1, port_mtu, lossless_mtu), ""
    needed = headroom_bytes(length, rate, port_mtu, lossless_mtu)
    return needed, f"{length:g} m at {rate // 1000} Gb/s"


def _small_headroom(router: Router, lossless: BufferedPriorities) -> str | None:
    """Describe headroom that is too small for a cable, or for any where its length is unknown."""
    needs = needed_headroom(router, lossless.port)
    xoff = None if lossless.profile is None else lossless.profile.xoff
    if needs is None or xoff is None:
        return None
    needed, cable = needs
    if xoff >= needed or not (cable or xoff == 0):
        return None
    groups = lossless.numbers
    return (
        f"{router.name}:{lossless.port}: priority groups {groups[0]} to {groups[-1]} have a"
        f" headroom (xoff) of {xoff} bytes, but {cable or 'two frames'} need at least"
        f" {needed}: packets can be lost"
    )


def _numbers(groups: Sequence[int]) -> str:
    return ", ".join(map(str, groups))


def _metres(text: str) -> float:
    return float(number(text.removesuffix("m")))
