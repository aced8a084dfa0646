"""Remedies that give some packets a lossless priority of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knotless.base.model_limits import PRIORITIES
from knotless.importers.fabric import TableFabric
from knotless.importers.next_hops import DROPPED, VcMap
from knotless.importers.reactions import rises

PREFERRED = (2, 6, 5, 1, 7)
"""The priorities that are taken into use, in this order; SONiC's dual-ToR uses 2 and 6."""


@dataclass(frozen=True)
class PriorityChange:
    """A fabric in which packets of some priorities move to others, by the former priority."""

    fabric: TableFabric
    moved: Mapping[int, int]


def lossless_priorities(imported: TableFabric) -> list[int]:
    """Return the priorities that some link keeps lossless."""
    if imported.pausing is None:
        return []
    return [int(priority) for priority in np.flatnonzero(imported.pausing.any(axis=(0, 2)))]


def with_bounce_priorities(
    imported: TableFabric, priorities: Sequence[int]
) -> PriorityChange | None:
    """Let packets that go up after they went down use another priority from there on.

    A packet that does so again becomes lossy. Returns None if there are no free priorities.
    """
    moved = _free(imported, priorities)
    if moved is None:
        return None
    channels = len(imported.channels)
    rise = np.append(rises(imported), np.zeros(len(imported.fabric.hosts), dtype=np.int8))
    vcs = []
    for traffic in imported.traffics:
        vc_map = traffic.vcs
        entering = np.minimum(vc_map.channel_in, len(rise) - 1)
        bounces = (
            (vc_map.channel_in < channels) & (rise[entering] < 0) & (rise[vc_map.channel_out] > 0)
        )
        vcs.append(_bounced(imported, vc_map, bounces, moved))
    return PriorityChange(
        imported.with_tables(imported.hops.repeated(2), vcs, _pausing(imported, moved)), moved
    )


def with_tunnel_priorities(
    imported: TableFabric, priorities: Sequence[int]
) -> PriorityChange | None:
    """Let packets in tunnels use another priority. None if there are no tunnels or priorities."""
    moved = _free(imported, priorities)
    if moved is None or imported.hops.towards is None or len(imported.hops.towards) < 2:
        return None
    vcs = []
    for traffic in imported.traffics:
        rows = traffic.vcs.rows.copy()
        rows[:, 1:] = _moved(rows[:, 1:], moved)
        vcs.append(replace(traffic.vcs, rows=rows))
    changed = imported.with_tables(imported.hops, vcs, _pausing(imported, moved))
    return PriorityChange(changed, moved)


def pauses_of(imported: TableFabric) -> NDArray[np.bool_]:
    """Return a copy of the pauses of a fabric that has settings of PFC; else there are none."""
    if imported.pausing is None:
        return np.zeros((len(imported.channels), PRIORITIES, 16), dtype=bool)
    return imported.pausing.copy()


def _free(imported: TableFabric, priorities: Sequence[int]) -> dict[int, int] | None:
    if imported.pausing is None:
        return None
    used = set(lossless_priorities(imported))
    for config in imported.configs:  # a new priority needs a traffic class of the same number
        maps = config.get("DSCP_TO_TC_MAP", {}).values()
        used |= {int(tc) for mapping in maps for tc in mapping.values() if tc.isdecimal()}
    free = [priority for priority in PREFERRED if priority not in used]
    if not priorities or len(free) < len(priorities):
        return None
    return dict(zip(priorities, free, strict=False))


def _pausing(imported: TableFabric, moved: Mapping[int, int]) -> NDArray[np.bool_]:
    """Return the pauses with the new priorities lossless wherever the former ones are."""
    pausing = pauses_of(imported)
    for former, new in moved.items():
        pausing[:, new, new] |= pausing[:, former].any(axis=1)
    return pausing


def _moved(rows: NDArray[np.uint8], moved: Mapping[int, int]) -> NDArray[np.uint8]:
    """Return virtual channels (queue times 8 plus priority group) in the new priorities."""
    vcs = rows.copy()
    for former, new in moved.items():
        vcs[(rows < DROPPED) & (rows % PRIORITIES == former)] = new * PRIORITIES + new
    return vcs


def _bounced(
    imported: TableFabric, vc_map: VcMap, bounces: NDArray[np.bool_], moved: Mapping[int, int]
) -> VcMap:
    """Return the map with labels of packets that bounced after those of packets that did not."""
    count, labels = vc_map.rows.shape
    labels_now = np.broadcast_to(np.arange(labels, dtype=np.uint16), vc_map.rows.shape)
    labels_now = labels_now if vc_map.labels is None else vc_map.labels
    bounced = _moved(vc_map.rows, moved)
    lossless = set(moved) | set(lossless_priorities(imported)) | set(moved.values())
    lossy = next((p for p in range(PRIORITIES) if p not in lossless), None)
    lost = bounced.copy()
    lost[bounced != vc_map.rows] = DROPPED if lossy is None else lossy * PRIORITIES + lossy
    rows = np.empty((2 * count, 2 * labels), dtype=np.uint8)
    onward = np.empty((2 * count, 2 * labels), dtype=np.uint16)
    rows[0::2] = np.concatenate([vc_map.rows, bounced], axis=1)
    onward[0::2] = np.concatenate([labels_now, labels + labels_now], axis=1)
    rows[1::2] = np.concatenate([bounced, lost], axis=1)
    onward[1::2] = np.concatenate([labels + labels_now, labels + labels_now], axis=1)
    row = (2 * vc_map.row + bounces).astype(np.uint32)
    return VcMap(vc_map.channel_in, vc_map.channel_out, row, rows, onward)
