"""Verdicts on buffers of imported fabrics: losses, and cycles through pools."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from knotless.base.flow_control import FlowControl
from knotless.base.model_limits import PRIORITIES
from knotless.importers.fabric import TableFabric
from knotless.importers.switch_settings import ReadGroup, ReadSettings, file_of
from knotless.routing.graphs.dependencies import Edges, virtual_channel
from knotless.verification.pool_waits import PoolStep, Share, Waits, pool_cycle
from knotless.verification.switch_losses import SwitchEnds, losses_of_tables


def losses_in(imported: TableFabric) -> list[str]:
    """Return a line for each mistake in tables of buffers by which lossless packets can be lost."""
    settings = imported.switch_settings()
    lines = [text for read in settings.values() for text in read.losses]
    if imported.flow_control != FlowControl.PFC or not any(r.groups for r in settings.values()):
        return lines
    ends = SwitchEnds(imported.fabric, file_of(settings)[0], FlowControl.PFC)
    needs = {
        (name, group.port): group.needs_bytes
        for name, read in settings.items()
        for group in read.groups
        if group.needs_bytes is not None
    }
    return [*lines, *losses_of_tables(ends, needs)]


def reads_all_reserves(imported: TableFabric) -> bool:
    """Return whether tables say what is reserved for each lossless priority of each channel."""
    if imported.pausing is None:
        return False
    settings = imported.switch_settings()
    reserved = {
        (name, group.port, group.priority)
        for name, read in settings.items()
        for group in read.groups
        if group.reserved_bytes is not None and group.pool is not None
    }
    channels = imported.channels
    return all(
        (channels.names[channels.head[channel]], int(channels.in_port[channel]), group) in reserved
        for channel, group in np.argwhere(imported.pausing.any(axis=2)).tolist()
    )


def has_possible_pool_waits(imported: TableFabric) -> bool:
    """Return whether a lossless buffer may wait for its pool, so that these may close a cycle.

    None does if for each of them as much as its longest packet is reserved.
    """
    if imported.pausing is None:
        return False
    bare = {
        (*end, priority % PRIORITIES)
        for end, shares in _shares(imported, imported.switch_settings(), partial=True).items()
        for priority, share in shares.items()
        if not share.reserved
    }
    channels = imported.channels
    return any(
        (int(channels.head[channel]), int(channels.in_port[channel]), group) in bare
        for channel, group in np.argwhere(imported.pausing.any(axis=2)).tolist()
    )


def has_bare_buffers(imported: TableFabric) -> bool:
    """Return whether a lossless buffer of a pool may lack a reserve, those at hosts included."""
    return any(
        group.lossless and group.pool is not None and not _has_reserve(group, partial=True)
        for read in imported.switch_settings().values()
        for group in read.groups
    )


def pool_cycle_of(
    imported: TableFabric, rows: Edges, causes: NDArray[np.int64], edges: Edges
) -> tuple[list[PoolStep], list[str]]:
    """Return a shortest cycle through shared pools, and the facts that would make it certain.

    ``rows`` are the dependencies of all packets, ``edges`` those between lossless virtual channels,
    and ``causes`` their rows. A cycle is certain if nothing at all is reserved for its buffers.
    """
    if imported.pausing is None:
        return [], []
    settings = imported.switch_settings()
    waits = _waits(imported, imported.pausing, settings, rows, causes, edges)
    certain = pool_cycle(waits, _shares(imported, settings, partial=False))
    if certain:
        return certain, []
    possible = pool_cycle(waits, _shares(imported, settings, partial=True))
    partial = [
        f"a reserve (size) of {group.frame_bytes} bytes, the longest lossless packet, in the buffer"
        f" profile of {name}:{imported.channels.port_name(switch, group.port)}"
        for switch, name in enumerate(imported.channels.names)
        for group in settings.get(name, ReadSettings()).groups
        if possible
        and group.lossless
        and group.pool
        and group.reserved_bytes
        and _is_partial(group)
    ]
    return possible, (partial[:1] or ["the size of all buffer profiles"]) if possible else []


def _is_partial(group: ReadGroup) -> bool:
    return group.reserved_bytes is None or 0 < group.reserved_bytes < group.frame_bytes


def _has_reserve(group: ReadGroup, *, partial: bool) -> bool:
    if _is_partial(group):
        return not partial
    return group.reserved_bytes != 0


def _shares(
    imported: TableFabric, settings: Mapping[str, ReadSettings], *, partial: bool
) -> dict[tuple[int, int], dict[int, Share]]:
    """Return the pools of ingress buffers; with ``partial``, part of a packet is no reserve.

    Nor is one that is not known then.
    """
    shares: dict[tuple[int, int], dict[int, Share]] = {}
    for switch, name in enumerate(imported.channels.names):
        for group in settings.get(name, ReadSettings()).groups:
            if group.pool is not None:
                of_port = shares.setdefault((switch, group.port), {})
                of_port[group.priority] = Share(group.pool, _has_reserve(group, partial=partial))
    return shares


def _waits(
    imported: TableFabric,
    pausing: NDArray[np.bool_],
    settings: Mapping[str, ReadSettings],
    rows: Edges,
    causes: NDArray[np.int64],
    edges: Edges,
) -> Waits:
    waiting, requests, groups = imported.requested(rows)

    def pools_held(traffic: int, source: int) -> frozenset[str] | None:
        groups = imported.first_groups(traffic, source)
        if not groups:
            return None
        switch, port = imported.hops.ends[source]
        of_switch = settings.get(imported.channels.names[switch], ReadSettings()).groups
        held = {group.pool for group in of_switch if group.port == port if group.priority in groups}
        # Of a buffer that the tables do not list, the pool is not known.
        return frozenset(pool for pool in held if pool is not None) or None

    def nodes_of(channel: int, vc: int) -> list[int]:
        stopped = np.flatnonzero(pausing[channel, :, vc // PRIORITIES]).tolist()
        return [virtual_channel(channel, group) for group in stopped]

    return Waits(
        channels=imported.channels,
        rows=rows,
        groups=rows[:, 1] % PRIORITIES,
        waiting=waiting,
        nodes=virtual_channel(requests, groups),
        edges=edges,
        causes=causes,
        classes=range(PRIORITIES),
        traffics=[traffic.state for traffic in imported.traffics],
        nodes_of=nodes_of,
        waiting_of=lambda channel: np.flatnonzero(pausing[channel].any(axis=1)).tolist(),
        source_pools={
            switch: frozenset(
                group.pool
                for group in settings.get(name, ReadSettings()).groups
                if group.pool is not None
            )
            for switch, name in enumerate(imported.channels.names)
        },
        pools_held=pools_held,
    )
