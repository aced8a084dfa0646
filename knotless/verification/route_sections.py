"""Parts of a checked state, kept so that the routes of one router can be checked alone.

See :mod:`.route_changes`, which reads it.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless.importers.fabric import AnyFabric, TableFabric
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.verification.imported_buffers import has_possible_pool_waits
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.route_changes import (
    OF_TRAFFIC,
    SHARED,
    Arrays,
    ends_of,
    keys_of,
    nodes_of,
    waits_in,
)


def sections_of(imported: AnyFabric, verdict: ImportedVerdict) -> dict[str, bytes]:
    """Return what a state needs so that routes can be checked alone; nothing if none is enough."""
    if not isinstance(imported, TableFabric) or verdict.cycle or verdict.undelivered:
        return {}
    sections = imported.sections()
    traffics = imported.traffics
    if (
        not sections
        or imported.pausing is None
        or any(traffic.state.core.problems for traffic in traffics)
        or [traffic.counted for traffic in traffics].count(True) != 1
    ):
        return {}
    switches, leaves, enters, ends = imported.hops.core_ends
    arrays: Arrays = {
        name: np.array(values, dtype="<u4").reshape(-1, 2)
        for name, values in (("leaves", leaves), ("enters", enters), ("ends", ends))
    }
    shared: Arrays | None = None
    for number, traffic in enumerate(traffics):
        of_traffic: Any = imported.hops.arrays(traffic.vcs)
        of_traffic["first_labels"] = traffic.first_labels
        if traffic.first_labels is None:
            return {}
        if shared is None:
            shared = {name: of_traffic[name] for name in SHARED}
        elif any(not np.array_equal(shared[name], of_traffic[name]) for name in SHARED):
            return {}
        arrays |= {f"{name} {number}": of_traffic[name] for name in OF_TRAFFIC}
    (counted,) = (traffic.state.core for traffic in traffics if traffic.counted)
    arrays |= shared or {}
    arrays["load"], arrays["load_parts"] = counted.exact_loads
    nodes = nodes_of(imported.pausing, [traffic.state.dependencies for traffic in traffics])
    arrays["waits"] = np.unique(keys_of(nodes))
    arrays["order"] = topological_order(arrays["waits"], VCS_PER_CHANNEL * len(imported.channels))
    channels, groups, queues = imported.pausing.shape
    arrays["pausing"] = imported.pausing.reshape(channels * groups, queues)
    about = {
        "switches": switches,
        "unread": imported.hops.unread,
        "counted": [traffic.counted for traffic in traffics],
        "waits_in": waits_in(arrays["waits"]),
        "pools": has_possible_pool_waits(imported),
        "arrays": {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()},
    }
    packed = {
        f"array {name}": np.ascontiguousarray(array).tobytes() for name, array in arrays.items()
    }
    return {**sections, "routes": json.dumps(about).encode(), **packed}


def topological_order(keys: NDArray[np.uint64], nodes: int) -> NDArray[np.int32]:
    """Return the place of each node in an order in which all edges lead on, -1: it has no edge.

    ``keys`` are the edges of a graph without cycles, sorted: 2^32 * from + to.
    """
    holds, requests = ends_of(keys)
    first = np.searchsorted(holds, np.arange(nodes + 1))
    missing = np.bincount(requests, minlength=nodes)
    order = np.full(nodes, -1, dtype=np.int32)
    ready = np.flatnonzero((missing == 0) & (np.diff(first) > 0))
    level = 0
    while len(ready):
        order[ready] = level
        level += 1
        counts = first[ready + 1] - first[ready]
        starts = np.repeat(first[ready] - np.cumsum(counts) + counts, counts)
        reached, times = np.unique(requests[starts + np.arange(counts.sum())], return_counts=True)
        missing[reached] -= times
        ready = reached[missing[reached] == 0]
    return order
