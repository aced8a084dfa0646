"""A remedy that gives up losslessness: links on which PFC is disabled for a priority."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from knotless.importers.fabric import TableFabric
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import Edges, find_cycle, virtual_channel
from knotless.verification.remedy_priorities import pauses_of

MAX_LINKS = 500
"""More links are not a remedy."""


def without_pfc(imported: TableFabric) -> tuple[TableFabric, list[tuple[int, int]]] | None:
    """Return the fabric without PFC on some links, and these as (channel, priority).

    Of a cycle, the link with the fewest packets of others is taken, until there is no cycle. No
    link can be left out of the result. Returns None if the links have no PFC settings.
    """
    if imported.pausing is None:
        return None
    dependencies = np.concatenate([traffic.state.dependencies for traffic in imported.traffics])
    load = np.sum([traffic.state.loads for traffic in imported.traffics], axis=0)
    reverse = imported.channels.reverse
    load = load + load[reverse]
    disabled: list[tuple[int, int]] = []
    while True:
        cycle = _cycle(imported, dependencies, disabled)
        if not cycle:
            break
        if len(disabled) >= MAX_LINKS:
            return None
        nodes = [divmod(node, VCS_PER_CHANNEL) for node in cycle]
        channel, priority = min(nodes, key=lambda node: (load[node[0]], node))
        disabled.append((min(channel, int(reverse[channel])), priority))
    for link in list(disabled):
        fewer = [other for other in disabled if other != link]
        if not _cycle(imported, dependencies, fewer):
            disabled = fewer
    return imported.with_pauses(_pausing(imported, disabled)), sorted(disabled)


def _pausing(imported: TableFabric, disabled: Iterable[tuple[int, int]]) -> NDArray[np.bool_]:
    pausing = pauses_of(imported)
    for channel, priority in disabled:
        pausing[[channel, imported.channels.reverse[channel]], priority] = False
    return pausing


def _cycle(
    imported: TableFabric, dependencies: Edges, disabled: Iterable[tuple[int, int]]
) -> list[int]:
    _, ends = imported.with_pauses(_pausing(imported, disabled)).waits(dependencies)
    return find_cycle(
        np.stack([virtual_channel(*ends[:, :2].T), virtual_channel(*ends[:, 2:].T)], 1)
    )
