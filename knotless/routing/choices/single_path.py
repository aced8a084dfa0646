"""No choice: each pair of hosts has one path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knotless._core.graph import NextHops
from knotless.routing.choices.choice import (
    Binding,
    Planned,
    PlannedPaths,
    Planning,
    RequestedChoice,
)
from knotless.routing.engine import Engine
from knotless.routing.graphs.channels import Ints
from knotless.routing.routes import Routes, TableRoutes


@dataclass(frozen=True)
class SinglePath(RequestedChoice):
    """One path for each pair of hosts: that of the routes."""

    name: ClassVar[str] = "none"
    binding: ClassVar[Binding] = Binding.NONE
    description: ClassVar[str] = "one path for each pair"

    @property
    def sizes(self) -> NDArray[np.int64]:
        """There are no sets of several choices."""
        return np.empty(0, dtype=np.int64)

    @classmethod
    def is_possible_with(cls, engine: Engine) -> bool:  # noqa: ARG003 - all have paths
        """Return true."""
        return True

    @classmethod
    def planned(cls, planning: Planning) -> Planned:
        """Return the paths as they are."""
        return Planned(planning.routes, planning.pair_vlans, SINGLE_PATH)

    def summary(self) -> dict[str, object]:
        """Return nothing: there is no choice to describe."""
        return {}

    def as_json(self, plan: PlannedPaths) -> dict[str, object]:
        """Return ``sources``, see :func:`listed_sources`."""
        return {"sources": listed_sources(plan, plan.routes, plan.vlans)}

    def state_arrays(self, plan: PlannedPaths) -> dict[str, Any]:
        """Return next-hop tables if VLANs correspond to them, else explicit paths."""
        return _table_arrays(plan) or _path_arrays(plan)


SINGLE_PATH = SinglePath()


def listed_sources(plan: PlannedPaths, routes: Routes, vlans: Ints) -> list[dict[str, object]]:
    """Return the hosts, the VLAN and the paths of each row of ``routes``, for :func:`json.dumps`.

    A path maps the name of a destination switch to a list of virtual channels, such as ``s1:2/0``
    for output port 2 of s1 with priority 0; switches without a path from the row are omitted.
    """
    fabric, channels = plan.fabric, plan.channels
    sources: list[dict[str, object]] = []
    for row, vlan in enumerate(vlans.tolist()):
        names = [
            host.name
            for host, host_row in zip(fabric.hosts, routes.rows.tolist(), strict=True)
            if host_row == row
        ]
        paths = {
            switch.name: [channels.name(*hop) for hop in hops]
            for d, switch in enumerate(fabric.switches)
            if fabric.hosts_at[switch.name] and (hops := routes.path(row, d))
        }
        sources.append({"hosts": names, "vlan": vlan, "paths": paths})
    return sources


def _table_arrays(plan: PlannedPaths) -> dict[str, Any] | None:
    """Return the next-hop tables by VLAN; None if VLANs do not correspond to tables."""
    routes = plan.routes
    if not isinstance(routes, TableRoutes) or plan.tagging == "host":
        return None
    vlans: dict[int, int] = {}
    for row, table in enumerate(routes.table.tolist()):
        if vlans.setdefault(table, int(plan.vlans[row])) != plan.vlans[row]:
            return None
    merged = _by_vlan(routes.next_hop, vlans)
    if merged is None:
        return None
    return {
        "vlan": plan.vlans.astype(np.uint16),
        "table_vlan": np.array(list(dict.fromkeys(vlans.values())), dtype=np.uint16),
        **({} if routes.columns is None else {"columns": routes.columns}),
        "next_hop": merged,
        "first": routes.table.astype(np.uint32),
        "first_priority": np.ascontiguousarray(routes.first_priority),
        "changes": np.ascontiguousarray(routes.changes),
    }


def _by_vlan(next_hop: NextHops, vlans: Mapping[int, int]) -> NextHops | None:
    """Return a table for each VLAN, in their order; None if tables of a VLAN contradict each other.

    ``vlans`` maps each table that is used to its VLAN.
    """
    if list(vlans) == list(range(len(next_hop))) and len(set(vlans.values())) == len(vlans):
        return next_hop
    tables, merged = next_hop.array(), dict[int, Ints]()
    for table, vlan in vlans.items():
        own = tables[table]
        others = merged.setdefault(vlan, own)
        if others is not own:
            if ((others >= 0) & (own >= 0) & (others != own)).any():
                return None
            merged[vlan] = np.maximum(others, own)
    return NextHops(np.stack(list(merged.values())))


def _path_arrays(plan: PlannedPaths) -> dict[str, Any]:
    """Return the explicit paths and the VLAN of each."""
    routes = plan.routes
    return {
        "vlan": np.ascontiguousarray(plan.pair_vlans, dtype=np.uint16).reshape(-1),
        "channels": np.ascontiguousarray(routes.channels),
        "priorities": np.ascontiguousarray(routes.priorities),
        "longest": routes.channels.shape[2],
    }
