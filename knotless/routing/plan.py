"""Plans: the paths that an engine chose for a fabric, and the VLANs of the sources."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl, resolved
from knotless.base.memory import Cost, refuse_beyond
from knotless.routing.choices.choice import Binding, Choice, ChosenRoutes, Planning
from knotless.routing.choices.requested import KINDS
from knotless.routing.choices.single_path import SINGLE_PATH
from knotless.routing.engine import engine_for, engine_named
from knotless.routing.graphs.channels import Channels, Ints, channels_of
from knotless.routing.graphs.next_hop_sets import NextHopSets
from knotless.routing.graphs.spanning_tree import pruned
from knotless.routing.graphs.task import MAX_VCS, Task
from knotless.routing.multicast import MulticastGroup, groups_of
from knotless.routing.request import PlanRequest, SourceCheck
from knotless.routing.routes import Routes, TableRoutes
from knotless.routing.vlans.assignment import (
    FIRST_VLAN,
    assign_table_vlans,
    assign_vlans,
    refuse_vlans_above,
)
from knotless.routing.vlans.broadcast_vlan import Links, broadcast_vlans
from knotless.routing.vlans.host_tags import EVERYTHING_ELSE, HostTags
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import NO_FAILURES, Failures, parts


@dataclass(frozen=True)
class Hop:
    """One switch of a path: the frame's input port, its output port, and its output priority.

    At the last switch the frame is sent to a host, untagged, with priority 0.

    Attributes
    ----------
    switch : str
        The name of the switch.
    in_port, out_port : int
        Its ports, from 1.
    priority : int
        The priority (PCP, 0 to 7) with which the frame leaves.

    """

    switch: str
    in_port: int
    out_port: int
    priority: int


@dataclass(frozen=True)
class Plan:
    """Routes and VLANs, from which the rules of a fabric are compiled.

    Attributes
    ----------
    fabric : Fabric
        The fabric.
    request : PlanRequest
        The request, with the engine that ``auto`` selected.
    channels : Channels
        The numbered channels of the fabric.
    routes : ExplicitRoutes or TableRoutes
        Paths, priorities and broadcast trees.
    pair_vlans : array of int32, shape (rows, switches)
        The VLAN in which the hosts of each row of ``routes`` send to each switch; if switches tag,
        it is the same for all switches.
    routing_ms : float
        The time that the engine took; VLAN assignment is not included.
    broadcast_links : mapping of int to tuple of int
        The links of each VLAN that carries broadcasts, if hosts tag and VLANs are trees.
    failures : Failures
        The parts of the fabric that a repaired plan does not use (:mod:`knotless.routing.repair`);
        pairs of hosts that only they connect have no path.
    choice : Choice
        What frames have a choice of, if pairs have several paths: then only the rows, the broadcast
        trees and the first priorities of ``routes`` count.

    """

    fabric: Fabric
    request: PlanRequest
    channels: Channels
    routes: Routes
    pair_vlans: Ints
    routing_ms: float
    broadcast_links: Mapping[int, Links] = field(default_factory=dict)
    failures: Failures = NO_FAILURES
    choice: Choice = SINGLE_PATH

    @property
    def engine(self) -> str:
        """The name of the routing engine."""
        return self.request.engine

    @property
    def multipath(self) -> str:
        """The rule for one of several next hops or paths: as requested, or the engine's.

        What can happen is the union of all choices.
        """
        return self.choice.name

    @property
    def has_choices(self) -> bool:
        """Whether pairs of hosts have several paths."""
        return self.choice.binding is not Binding.NONE

    @property
    def next_hops(self) -> NextHopSets | None:
        """The sets of next hops; None: frames do not choose among next hops."""
        return self.choice.next_hops

    @property
    def tagging(self) -> str:
        """The device that adds the VLAN tag: ``switch`` or ``host``."""
        return self.request.tagging

    @property
    def source_check(self) -> SourceCheck:
        """The source addresses that switches check of what hosts send."""
        return self.request.source_check

    @cached_property
    def multicast(self) -> tuple[MulticastGroup, ...]:
        """The multicast groups."""
        return groups_of(self.fabric, dict(self.request.multicast))

    @property
    def flow_control(self) -> FlowControl:
        """The flow control for which the plan is made."""
        return resolved(self.request.flow_control, self.vcs)

    def path(self, source: str, destination: str) -> list[Hop]:
        """Return the path of a frame from one host to another.

        Parameters
        ----------
        source, destination : str
            The names of the hosts.

        Returns
        -------
        list of Hop
            The switches on the path; the last one is that of the destination.

        Raises
        ------
        PlanError
            There is no such host, failures separate the two, or there are several paths.

        Examples
        --------
        >>> from knotless.topologies import load
        >>> plan = make_plan(load("torus,4,4"), "dor")
        >>> [(hop.switch, hop.out_port) for hop in plan.path("h1", "h6")]
        [('s1', 2), ('s2', 4), ('s6', 1)]

        """
        from_host, to_host = (self._host(name) for name in (source, destination))
        if self.has_choices:
            raise PlanError(f"with multipath, {source} has several paths to {destination}")
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
        if not hops and fabric.hosts[from_host].switch != target.switch:
            raise PlanError(f"{fabric.name}: failures separate {source} from {destination}")
        hops.append(Hop(target.switch, in_port, target.port, 0))
        return hops

    @cached_property
    def vlans(self) -> Ints:
        """Return the VLAN of each row; if hosts tag, the VLAN of its broadcasts."""
        row_vlans: Ints = self.pair_vlans[np.arange(len(self.pair_vlans)), self.row_switch]
        return row_vlans

    def vlan_of(self, host: str) -> int:
        """Return the VLAN in which ``host`` sends; if hosts tag, that of its broadcasts."""
        return int(self.vlans[self.routes.rows[self._host(host)]])

    @cached_property
    def vlan_count(self) -> int:
        """The number of VLANs; they are consecutive."""
        return self.choice.vlan_count or int(self.pair_vlans.max()) - FIRST_VLAN + 1

    def host_tags(self) -> HostTags | None:
        """Return the VLAN table of each host's interface if hosts tag, else None."""
        if self.tagging != "host":
            return None
        fabric, index = self.fabric, self.fabric.switch_index
        tags: HostTags = {}
        for host, row in zip(fabric.hosts, self.routes.rows.tolist(), strict=True):
            by_switch, default = self.pair_vlans[row].tolist(), int(self.vlans[row])
            others = {other.mac: by_switch[index[other.switch]] for other in fabric.hosts}
            others = {mac: vlan for mac, vlan in others.items() if vlan != default}
            tags[host.name] = {EVERYTHING_ELSE: default, **others}
        return tags

    def _host(self, name: str) -> int:
        try:
            return self.fabric.host_index[name]
        except KeyError:
            raise PlanError(f"{self.fabric.name} has no host {name!r}") from None

    @cached_property
    def senders(self) -> Ints:
        """Return the number of hosts that use each row of ``routes``, shape (rows,)."""
        return np.bincount(self.routes.rows, minlength=len(self.pair_vlans)).astype(np.int32)

    @cached_property
    def receivers(self) -> Ints:
        """Return the number of hosts on each switch, shape (switches,)."""
        switches = [self.fabric.switch_index[host.switch] for host in self.fabric.hosts]
        return np.bincount(switches, minlength=len(self.channels.names)).astype(np.int32)

    @cached_property
    def row_switch(self) -> Ints:
        """Return the switch of each row's hosts, shape (rows,)."""
        switch = np.zeros(len(self.pair_vlans), dtype=np.int32)
        switches = [self.fabric.switch_index[host.switch] for host in self.fabric.hosts]
        switch[self.routes.rows] = switches
        return switch

    @cached_property
    def vcs(self) -> int:
        """The number of virtual channels that the plan uses."""
        return max(self.routes.vcs, self.choice.vcs)

    def settled_request(self) -> PlanRequest:
        """Return the request with ``auto`` replaced by the engine and flow control selected."""
        return self.request.but(flow_control=self.flow_control)


def distinct_rows(*columns: NDArray[Any]) -> list[tuple[int, ...]]:
    """Return the distinct rows of equally long columns of numbers from 0, sorted.

    Each row is packed into one integer, which is much faster than np.unique over an axis.
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


def make_plan(fabric: Fabric, request: PlanRequest | str = AUTO_ENGINE, **choices: Any) -> Plan:
    """Route a fabric as requested and assign VLANs.

    Parameters
    ----------
    fabric : Fabric
        The fabric, which must be connected.
    request : PlanRequest or str
        The request, or an engine's name.
    **choices
        The other fields of the request, if ``request`` is a name.

    Returns
    -------
    Plan
        The plan. Whether it can deadlock is not checked here: see
        :class:`knotless.verification.checked_plan.CheckedPlan`.

    Raises
    ------
    PlanError
        A choice that does not exist, an engine that cannot route this fabric, or more
        virtual channels, VLANs or memory needed than there may be.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> plan = make_plan(load("torus,5,5"))
    >>> plan.engine, plan.vcs, str(plan.flow_control)
    ('dor', 2, 'pfc')
    >>> make_plan(load("torus,5,5"), "dor", vcs=1, select="low-port").flow_control.value
    'pause'

    """
    if isinstance(request, str):
        request = PlanRequest.from_options(**{"engine": request, **choices})
    chosen = engine_for(fabric, request.engine)
    kind = KINDS[request.multipath]
    if request.engine == AUTO_ENGINE and not kind.is_possible_with(engine_named(chosen)):
        chosen = "updown"
    request = request.but(engine=chosen)
    engine, vcs, root = engine_named(request.engine), request.vcs, request.root
    if root is not None and not engine.has_root:
        raise PlanError(f"{engine.name} has no root switch; omit root")
    if root is not None and root not in fabric.switch_index:
        raise PlanError(f"root: {fabric.name} has no switch {root!r}")
    groups_of(fabric, dict(request.multicast))
    apart = next((i for i, part in enumerate(parts(fabric, NO_FAILURES)) if part), None)
    if apart is not None:
        first, other = fabric.switches[0].name, fabric.switches[apart].name
        raise PlanError(f"{fabric.name} is not connected: no path from {first} to {other}")
    began = time.perf_counter()
    channels = channels_of(fabric)
    turns = int((np.bincount(channels.tail) ** 2).sum())
    needed = Cost.SWITCH_PAIR.bytes_for(len(fabric.switches) ** 2) + Cost.TURN.bytes_for(turns)
    refuse_beyond(f"{fabric.name}: planning it", needed, PlanError)
    root_index = None if root is None else fabric.switch_index[root]
    task = Task(fabric, channels, vcs, request.select, root_index)
    routes = engine.route(task)
    elapsed_ms = 1000 * (time.perf_counter() - began)
    if request.vlans == "tree":
        # Rows of one table are in several VLANs, each of which is repaired by itself.
        routes = routes.written_out()
    pair_vlans = _vlans(fabric, channels, routes, request)
    if request.layers is not None and not kind.has_layers:
        raise PlanError("layers: a number of layers needs --multipath layers")
    if engine.is_adaptive and request.multipath != "none":
        raise PlanError(f"multipath: {engine.name} has a choice of its own; omit --multipath")
    if isinstance(routes, ChosenRoutes):
        request.refuse_single_path_options(engine.name)
        choice = routes.choice
        refuse_vlans_above(choice.vlan_count, request.max_vlans)
    else:
        planning = Planning(engine, task, request, routes, pair_vlans)
        routes, pair_vlans, choice = kind.planned(planning)
    routes = _without_useless_branches(fabric, channels, routes)
    plan = Plan(fabric, request, channels, routes, pair_vlans, elapsed_ms, choice=choice)
    if not plan.has_choices and request.vlans == "tree" and request.tagging == "host":
        plan = with_broadcast_vlans(plan)
    if plan.vcs > (vcs or MAX_VCS):
        raise PlanError(
            f"{engine.name} needs {plan.vcs} virtual channels on {fabric.name},"
            f" {vcs or MAX_VCS} are allowed"
        )
    return plan


def with_broadcast_vlans(plan: Plan) -> Plan:
    """Assign VLANs to broadcasts, and to hosts' pairs without a path the VLAN of broadcasts."""
    receives = (plan.receivers > 0)[None, :, None]
    paths = np.where(receives, plan.routes.channels, np.int32(-1))
    trees, vlans = plan.routes.tree_channels, plan.pair_vlans
    of_row, links = np.zeros_like(plan.row_switch), dict[int, Links]()
    # Failures can divide the fabric into parts, which need a broadcast VLAN each.
    part = np.array(parts(plan.fabric, plan.failures))[plan.row_switch]
    for rows in [np.flatnonzero(part == number) for number in np.unique(part)]:
        routes = paths[rows], vlans[rows], trees, plan.row_switch[rows]
        assigned = broadcast_vlans(plan.channels, *routes)
        of_row[rows] = assigned.of_row
        for vlan, vlan_links in assigned.links.items():
            links[vlan] = tuple(sorted({*links.get(vlan, ()), *vlan_links}))
    refuse_vlans_above(int(of_row.max()) - FIRST_VLAN + 1, plan.request.max_vlans)
    has_path = (paths >= 0).any(axis=2)
    vlans = np.where(has_path, vlans, of_row[:, None]).astype(np.int32)
    return replace(plan, pair_vlans=vlans, broadcast_links=links)


def _has_hosts(fabric: Fabric) -> NDArray[np.bool_]:
    """Return whether each switch has hosts, shape (switches,)."""
    return np.array([bool(fabric.hosts_at[switch.name]) for switch in fabric.switches])


def _vlans(fabric: Fabric, channels: Channels, routes: Routes, request: PlanRequest) -> Ints:
    """Return the VLAN of each path to a switch with hosts, shape (rows, switches)."""
    receives, tagging, limit = _has_hosts(fabric), request.tagging, request.max_vlans
    if isinstance(routes, TableRoutes) and request.vlans == "default":
        return assign_table_vlans(routes, receives, tagging=tagging, limit=limit)
    used = np.where(receives[None, :, None], routes.channels, np.int32(-1))
    return assign_vlans(channels, used, assignment=request.vlans, tagging=tagging, limit=limit)


def _without_useless_branches(fabric: Fabric, channels: Channels, routes: Routes) -> Routes:
    """Remove branches of the broadcast trees that reach no host, and trees without senders."""
    has_host = _has_hosts(fabric)
    trees = pruned(channels, routes.tree_channels, has_host, sources=has_host)
    priorities = np.where(trees >= 0, routes.tree_priorities, np.uint8(0))
    return replace(routes, tree_channels=trees, tree_priorities=priorities)


MOST_CHOICES = 64
"""The most ports of a rule that are followed, as in core/forwarding/src/openflow/groups.rs."""


def refuse_adaptive(plan: Plan) -> None:
    """Raise PlanError if neither OpenFlow nor 802.1Q switches can choose as ``plan`` does."""
    if plan.choice.no_switch:
        raise PlanError(f"{plan.engine} on {plan.fabric.name}: {plan.choice.no_switch}")


def refuse_unruly(plan: Plan) -> None:
    """Raise PlanError if no OpenFlow rule that can be proven chooses next hops as ``plan`` does."""
    refuse_adaptive(plan)
    if plan.choice.no_rules:
        raise PlanError(plan.choice.no_rules)
    largest = 0 if plan.next_hops is None else int(plan.next_hops.sizes.max(initial=0))
    if largest > MOST_CHOICES:
        raise PlanError(
            f"{plan.fabric.name}: a switch would choose among {largest} next hops; rules with more"
            f" than {MOST_CHOICES} are not followed: omit --multipath"
        )
