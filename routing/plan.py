"""A plan: an engine's paths through a fabric, with the VLAN of each source."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routing.cdg import cycle_among, cycle_names
from routing.channels import Channels, Ints, channels_of
from routing.engine import MAX_VCS, SELECTIONS, Task, engine_named
from routing.host_tags import EVERYTHING_ELSE, HostTags
from routing.multicast import MulticastGroup, groups_of
from routing.routes import Routes, TableRoutes
from routing.trees import pruned
from routing.usage import Usage, usage
from routing.vlan import (
    ASSIGNMENTS,
    FIRST_VLAN,
    MOST_VLANS,
    TAGGINGS,
    assign_table_vlans,
    assign_vlans,
)
from routing.walks import plain_graph
from topologies.errors import PlanError
from topologies.fabric import Fabric


@dataclass(frozen=True)
class Hop:
    """One switch of a path: where the frame comes in and goes out, and its priority on leaving.

    The last hop goes out to a host, untagged: priority 0.
    """

    switch: str
    in_port: int
    out_port: int
    priority: int


@dataclass(frozen=True)
class Plan:
    """Everything that the rules of a fabric are compiled from.

    ``pair_vlans`` (rows, switches) is the VLAN in which hosts of each row of ``routes`` send to
    each switch; with ``tagging`` by switches it depends on the row alone. ``routing_ms`` is
    what the engine took for the paths, the VLANs not counted. ``multicast`` are the groups that
    get no more than their members need.
    """

    fabric: Fabric
    engine: str
    select: str
    channels: Channels
    routes: Routes
    tagging: str
    pair_vlans: Ints
    routing_ms: float
    multicast: tuple[MulticastGroup, ...] = ()

    def path(self, source: str, destination: str) -> list[Hop]:
        """Return the switches that a frame from one host to another passes, by host names."""
        from_host, to_host = (self._host(name) for name in (source, destination))
        row = int(self.routes.rows[from_host])
        fabric, channels = self.fabric, self.channels
        target = fabric.hosts[to_host]
        d = fabric.switch_index[target.switch]
        in_port = fabric.hosts[from_host].port
        hops = []
        for c, priority in self.routes.path(row, d):
            name = channels.names[channels.tail[c]]
            hops.append(Hop(name, in_port, int(channels.out_port[c]), priority))
            in_port = int(channels.in_port[c])
        hops.append(Hop(target.switch, in_port, target.port, 0))
        return hops

    @cached_property
    def vlans(self) -> Ints:
        """Return the VLAN of each row: with tagging by hosts, the one that broadcasts go in."""
        own: Ints = self.pair_vlans[np.arange(len(self.pair_vlans)), self.row_switch]
        return own

    def vlan_of(self, host: str) -> int:
        """Return the VLAN in which ``host`` sends (with tagging by hosts: broadcasts)."""
        return int(self.vlans[self.routes.rows[self._host(host)]])

    @cached_property
    def vlan_count(self) -> int:
        """How many VLANs the plan uses, from the first on."""
        return int(self.pair_vlans.max()) - FIRST_VLAN + 1

    def host_tags(self) -> HostTags | None:
        """Return what each host's interface must know with tagging by hosts; else None."""
        if self.tagging != "host":
            return None
        fabric, index = self.fabric, self.fabric.switch_index
        tags: HostTags = {}
        for host, row in zip(fabric.hosts, self.routes.rows.tolist(), strict=True):
            to, usual = self.pair_vlans[row].tolist(), int(self.vlans[row])
            others = {far.mac: to[index[far.switch]] for far in fabric.hosts}
            others = {mac: vlan for mac, vlan in others.items() if vlan != usual}
            tags[host.name] = {EVERYTHING_ELSE: usual, **others}
        return tags

    def _host(self, name: str) -> int:
        try:
            return self.fabric.host_index[name]
        except KeyError:
            raise PlanError(f"{self.fabric.name} has no host {name!r}") from None

    @cached_property
    def senders(self) -> Ints:
        """Return how many hosts send by each row."""
        return np.bincount(self.routes.rows, minlength=len(self.pair_vlans)).astype(np.int32)

    @cached_property
    def receivers(self) -> Ints:
        """Return how many hosts each switch has."""
        at = [self.fabric.switch_index[host.switch] for host in self.fabric.hosts]
        return np.bincount(at, minlength=len(self.channels.names)).astype(np.int32)

    @cached_property
    def row_switch(self) -> Ints:
        """Return the switch of the hosts of each row."""
        switch = np.zeros(len(self.pair_vlans), dtype=np.int32)
        at = [self.fabric.switch_index[host.switch] for host in self.fabric.hosts]
        switch[self.routes.rows] = at
        return switch

    @property
    def vcs(self) -> int:
        """How many virtual channels the plan uses."""
        return self.routes.vcs

    @cached_property
    def _usage(self) -> Usage:
        return usage(self.channels, self.routes, self.senders, self.receivers)

    @property
    def loads(self) -> NDArray[np.int64]:
        """Return the paths between hosts that take each channel."""
        return self._usage.loads

    def dependencies(self) -> set[tuple[int, int]]:
        """Return the channel dependency graph of unicast and broadcast together."""
        return {(a, b) for a, b in distinct_rows(self._usage.before, self._usage.after)}

    @cached_property
    def _shortest_hops(self) -> int:
        """The channels of shortest paths between all pairs of hosts together."""
        return self.channels.core.total_hops(self.receivers, self.receivers)

    @property
    def is_minimal(self) -> bool:
        """Whether all paths between hosts are shortest paths."""
        return int(self.loads.sum()) == self._shortest_hops

    @cached_property
    def cycle(self) -> list[str]:
        """Return a cycle of channel dependencies (``s1:2/0`` ...), or an empty list."""
        return cycle_names(self.channels, cycle_among(self._usage.before, self._usage.after))

    def summary(self) -> dict[str, object]:
        """Return the plan's figures, as ``knotless plan --json`` prints them.

        The mean number of switches counts all ordered pairs of hosts, a host to itself included,
        as Table 1 of Otsuka et al. does; ``load_bound`` is the mean load of a channel when all
        pairs take shortest paths, which no plan's greatest load can be under.
        """
        from routing.compile import compile_rules  # it needs Plan

        began = time.perf_counter()
        rules = compile_rules(self)
        compile_ms = 1000 * (time.perf_counter() - began)
        pairs = len(self.fabric.hosts) ** 2
        counts = [len(of_switch.rules) for of_switch in rules.values()]
        return {
            "fabric": self.fabric.name,
            "engine": self.engine,
            "select": self.select,
            "vcs": self.vcs,
            "vlans": self.vlan_count,
            "mean_switches": (int(self.loads.sum()) + pairs) / pairs,
            "max_switches": self._usage.longest + 1,
            "max_channel_load": int(self.loads.max(initial=0)),
            "load_bound": self._shortest_hops / max(1, len(self.channels)),
            "minimal": self.is_minimal,
            "acyclic": not self.cycle,
            "cycle": self.cycle,
            "routing_ms": round(self.routing_ms, 3),
            "compile_ms": round(compile_ms, 3),
            "rules": sum(counts),
            "rules_max_switch": max(counts),
        }


def distinct_rows(*columns: NDArray[Any]) -> list[tuple[int, ...]]:
    """Return the distinct rows of equally long columns of numbers from 0, sorted.

    Each row is packed into one integer: far faster than np.unique over an axis.
    """
    packed = np.zeros(len(columns[0]), dtype=np.int64)
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    if math.prod(sizes) >= 2**63:
        raise OverflowError("numbers too large to be packed")
    for column, size in zip(columns, sizes, strict=True):
        packed = packed * size + column
    rest = np.unique(packed)
    unpacked = []
    for size in reversed(sizes):
        rest, column = np.divmod(rest, size)
        unpacked.append(column.tolist())
    return list(zip(*reversed(unpacked), strict=True))


def shortest_hops(channels: Channels) -> Ints:
    """Return (switches, switches): the fewest channels from one switch to another."""
    return plain_graph(channels).hops()


def make_plan(
    fabric: Fabric,
    engine: str,
    *,
    vcs: int | None = None,
    select: str = "spread",
    tagging: str = "switch",
    vlans: str = "default",
    max_vlans: int = MOST_VLANS,
    root: str | None = None,
    multicast: Mapping[int, Sequence[str]] | None = None,
) -> Plan:
    """Route ``fabric`` with the engine of that name and assign VLANs.

    ``vcs`` is the number of virtual channels that the plan may use (None: the engine's own
    choice), ``vlans`` one of :data:`routing.vlan.ASSIGNMENTS`, ``max_vlans`` how many there may
    be, ``root`` the name of the root switch for engines that have one (else the first),
    ``multicast`` the members of each group by its number (see :mod:`routing.multicast`).

    Raises
    ------
    PlanError
        A choice that does not exist, an engine that cannot route this fabric, or more
        virtual channels or VLANs needed than there may be.

    """
    chosen = engine_named(engine)
    if vcs is not None and not 1 <= vcs <= MAX_VCS:
        raise PlanError(f"vcs must be 1 to {MAX_VCS}, not {vcs}")
    if select not in SELECTIONS:
        raise PlanError(f"select must be one of {', '.join(SELECTIONS)}, not {select!r}")
    if tagging not in TAGGINGS:
        raise PlanError(f"tagging must be one of {', '.join(TAGGINGS)}, not {tagging!r}")
    if vlans not in ASSIGNMENTS:
        raise PlanError(f"vlans must be one of {', '.join(ASSIGNMENTS)}, not {vlans!r}")
    if not 1 <= max_vlans <= MOST_VLANS:
        raise PlanError(f"max_vlans must be 1 to {MOST_VLANS}, not {max_vlans}")
    if root is not None and not chosen.has_root:
        raise PlanError(f"{engine} has no root switch; leave root out")
    if root is not None and root not in fabric.switch_index:
        raise PlanError(f"root: {fabric.name} has no switch {root!r}")
    groups = groups_of(fabric, multicast)
    began = time.perf_counter()
    channels = channels_of(fabric)
    root_index = None if root is None else fabric.switch_index[root]
    routes = chosen.route(Task(fabric, channels, vcs, select, root_index))
    elapsed_ms = 1000 * (time.perf_counter() - began)
    routes = _without_useless_branches(fabric, channels, routes)
    pair_vlans = _vlans(fabric, channels, routes, vlans, tagging, max_vlans)
    plan = Plan(fabric, engine, select, channels, routes, tagging, pair_vlans, elapsed_ms, groups)
    if plan.vcs > (MAX_VCS if vcs is None else vcs):
        raise PlanError(
            f"{engine} needs {plan.vcs} virtual channels on {fabric.name},"
            f" {vcs or MAX_VCS} are allowed"
        )
    return plan


def _has_hosts(fabric: Fabric) -> NDArray[np.bool_]:
    """Return which switches have hosts."""
    return np.array([bool(fabric.hosts_at[switch.name]) for switch in fabric.switches])


def _vlans(
    fabric: Fabric, channels: Channels, routes: Routes, assignment: str, tagging: str, limit: int
) -> Ints:
    """Return (rows, switches): the VLAN of each path to a switch with hosts."""
    receives = _has_hosts(fabric)
    if isinstance(routes, TableRoutes) and assignment == "default":
        return assign_table_vlans(routes, receives, tagging=tagging, limit=limit)
    used = np.where(receives[None, :, None], routes.channels, np.int32(-1))
    return assign_vlans(channels, used, assignment=assignment, tagging=tagging, limit=limit)


def _without_useless_branches(fabric: Fabric, channels: Channels, routes: Routes) -> Routes:
    """Cut from the broadcast trees what leads to no host, and trees that no host uses."""
    has_host = _has_hosts(fabric)
    trees = pruned(channels, routes.tree_channels, has_host, sources=has_host)
    priorities = np.where(trees >= 0, routes.tree_priorities, np.uint8(0))
    return replace(routes, tree_channels=trees, tree_priorities=priorities)
