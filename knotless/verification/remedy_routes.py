"""A remedy that withdraws routes: next hops of some destinations at some switches."""

from __future__ import annotations

from dataclasses import dataclass

from knotless.importers.fabric import TableFabric
from knotless.importers.reactions import what_if
from knotless.routing.graphs.channels import VCS_PER_CHANNEL

MAX_TURNS = 64
"""More turns are not tried."""


@dataclass(frozen=True)
class Withdrawn:
    """Next hops that a switch no longer uses: ``channel``, for these destinations."""

    channel: int
    destinations: tuple[int, ...]


def without_turns(imported: TableFabric) -> tuple[TableFabric, list[Withdrawn]] | None:
    """Return the fabric without the routes that close cycles, and these routes.

    Of a cycle, the turn is taken that leaves the fewest destinations without a next hop, of these
    the one with the fewest destinations. Returns None if many turns are not enough.
    """
    changed = imported
    withdrawn: list[Withdrawn] = []
    for _ in range(MAX_TURNS):
        core = what_if(changed, "static")
        nodes = core.intact()[0]
        if not nodes:
            return changed, withdrawn
        table, actions = changed.hops.table, changed.hops.actions
        best: tuple[tuple[int, int, int], Withdrawn] | None = None
        for holds, requests in zip(nodes, [*nodes[1:], *nodes[:1]], strict=True):
            channel = requests // VCS_PER_CHANNEL
            switch = int(changed.channels.tail[channel])
            causes = core.causes(holds, requests)
            lost = sum(actions.count(int(table[destination, switch])) < 2 for destination in causes)
            rank = (lost, len(causes), channel)
            if causes and (best is None or rank < best[0]):
                best = rank, Withdrawn(channel, tuple(causes))
        if best is None:
            return None
        withdrawn.append(best[1])
        changed = _withdraw(changed, best[1])
    return None


def _withdraw(imported: TableFabric, withdrawn: Withdrawn) -> TableFabric:
    channels, hops = imported.channels, imported.hops
    switch, port = int(channels.tail[withdrawn.channel]), int(channels.out_port[withdrawn.channel])
    table = hops.table
    for destination in withdrawn.destinations:
        table[destination, switch] = hops.actions.without(int(table[destination, switch]), port)
    return imported.with_tables(hops.with_table(table))
