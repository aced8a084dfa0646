"""Models of how the routing of an imported fabric reacts to failures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.base.errors import RuleError
from knotless.base.flow_control import FlowControl
from knotless.importers.fabric import ImportedFabric, TableFabric, TableTraffic
from knotless.importers.next_hops import VcMap
from knotless.routing.graphs.channels import Channels

REACTIONS = {
    "bgp": "shortest",
    "bgp-valley-free": "valley-free",
    "static": "static",
    "local": "local",
}
"""The models by their names for users; the core's names."""
_FAR = 1 << 20


def default_reaction(imported: ImportedFabric) -> str:
    """Return the model that fits a fabric: only routers compute routes by themselves."""
    routes = isinstance(imported, TableFabric) and imported.flow_control != FlowControl.CREDITS
    return "bgp" if routes else "static"


def what_if(imported: TableFabric, reaction: str) -> core.WhatIf:
    """Return the fabric as the Rust core evaluates failures, under one of :data:`REACTIONS`.

    Raises
    ------
    RuleError
        The model does not fit the fabric.

    """
    if imported.flow_control == FlowControl.CREDITS and REACTIONS[reaction] in (
        "shortest",
        "valley-free",
    ):
        raise RuleError(
            f"--react {reaction}: InfiniBand does not route by BGP; its tables stay as they are"
            " (static) until the subnet manager recomputes them (engine)"
        )
    hops, traffics = imported.hops, imported.traffics
    fallbacks = hops.fallbacks
    if fallbacks is None:
        fallbacks = np.empty((0, *hops.classes.shape), dtype=np.int32)
    arrays = {
        **hops.arrays(_all_vcs(traffics)),
        "towards": np.concatenate([_towards(imported, traffic) for traffic in traffics]),
        "relabelled": _relabelled(imported),
        "fallbacks": fallbacks,
        "pausing": np.empty((0, 8, 16), dtype=bool)
        if imported.pausing is None
        else imported.pausing,
        "rises": rises(imported),
    }
    sent = [
        (
            np.empty((0, 0), dtype=np.uint16)
            if traffic.first_labels is None
            else traffic.first_labels,
            first,
            traffic.counted,
        )
        for traffic, first in zip(traffics, first_labels(traffics), strict=True)
    ]
    return core.WhatIf(*hops.core_ends, arrays, sent, REACTIONS[reaction])


def levels(imported: TableFabric) -> NDArray[np.int32]:
    """Return the distance of each switch from the nearest switch with hosts."""
    channels, index = imported.channels, imported.fabric.switch_index
    level = np.full(len(channels.names), _FAR, dtype=np.int32)
    level[[index[host.switch] for host in imported.fabric.hosts]] = 0
    return _spread(channels, level)


def _spread(channels: Channels, level: NDArray[np.int32]) -> NDArray[np.int32]:
    while True:
        nearer = level.copy()
        np.minimum.at(nearer, channels.head, level[channels.tail] + 1)
        if np.array_equal(nearer, level):
            return level
        level = nearer


def rises(imported: TableFabric) -> NDArray[np.int8]:
    """Return for each channel 1 if it leads up, away from hosts, -1 if down, 0 if neither."""
    level, channels = levels(imported), imported.channels
    directions: NDArray[np.int8] = np.sign(level[channels.head] - level[channels.tail]).astype(
        np.int8
    )
    return directions


def first_labels(traffics: tuple[TableTraffic, ...]) -> list[int]:
    """Return the first of the numbers that the core gives to the labels of each traffic."""
    sizes = [traffic.vcs.rows.shape[1] for traffic in traffics]
    return [sum(sizes[:place]) for place in range(len(sizes))]


def _all_vcs(traffics: tuple[TableTraffic, ...]) -> VcMap:
    """Return the virtual channels of all traffics, which have their labels one after the other."""
    first = traffics[0].vcs
    labels = None
    if any(traffic.vcs.labels is not None for traffic in traffics):
        parts = [
            start
            + (
                np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
                if labels_of_traffic is None
                else labels_of_traffic
            )
            for start, labels_of_traffic, rows in zip(
                first_labels(traffics),
                [traffic.vcs.labels for traffic in traffics],
                [traffic.vcs.rows for traffic in traffics],
                strict=True,
            )
        ]
        labels = np.ascontiguousarray(np.concatenate(parts, axis=1), dtype=np.uint16)
    rows = np.ascontiguousarray(np.concatenate([traffic.vcs.rows for traffic in traffics], axis=1))
    return VcMap(first.channel_in, first.channel_out, first.row, rows, labels)


def _towards(imported: TableFabric, traffic: TableTraffic) -> NDArray[np.int64]:
    towards = imported.hops.towards
    labels = traffic.vcs.rows.shape[1]
    return np.full(labels, -1, dtype=np.int64) if towards is None else towards


def _relabelled(imported: TableFabric) -> NDArray[np.uint16]:
    total = sum(traffic.vcs.rows.shape[1] for traffic in imported.traffics)
    relabelled = imported.hops.relabelled
    if relabelled is None:
        return np.empty((0, total), dtype=np.uint16)
    starts = first_labels(imported.traffics)
    return np.ascontiguousarray(
        np.concatenate([start + relabelled for start in starts], axis=1), dtype=np.uint16
    )
