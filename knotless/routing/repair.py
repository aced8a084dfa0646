"""Repair of a plan: links and switches fail, and only the paths that used them move.

The routes for some failures are a function of the intact plan and the failures, never of an earlier
repair: all controllers compute the same, and when a link returns, so do the routes.

References
----------
Domke, Hoefler, Matsuoka, Routing on the dependency graph: a new approach to deadlock-free
high-performance routing, 2016 (Nue), which routes all paths in the graph of virtual channels.

"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from knotless._core import graph as core
from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.routing.graphs.channels import Ints, Priorities
from knotless.routing.graphs.next_hop_repair import without_channels
from knotless.routing.plan import Plan, with_broadcast_vlans
from knotless.routing.plan_of_parts import (
    Counts,
    has_no_cycle,
    new_plan,
    path_changes,
    set_changes,
)
from knotless.routing.routes import ExplicitRoutes, Routes, TableRoutes
from knotless.routing.vlans.assignment import FIRST_VLAN
from knotless.topologies.failures import FAILED, Failures, hosts_by_part, pairs_apart, parts

Kind = Literal["none", "repaired", "extended", "replanned", "updown"]


@dataclass(frozen=True)
class Repair:
    """A repaired plan, and what the repair changed.

    Attributes
    ----------
    intact : Plan
        The plan before the failures.
    plan : Plan
        The repaired plan.
    kind : {"none", "repaired", "extended", "replanned", "updown"}
        ``none`` if no path or broadcast tree used a failed part; ``repaired`` if only those that
        did have moved; ``extended`` if others had to make room; ``replanned`` if the same engine
        made a new plan for what remains of the fabric, ``updown`` if up*/down* had to.
    pairs, before, after : arrays of int64, shape (changed paths,)
        The ordered pairs of hosts of each path that changed, its channels in the intact plan, and
        now (0: there is no path).
    trees : int
        The number of switches whose broadcasts have another tree.

    """

    intact: Plan
    plan: Plan
    kind: Kind
    pairs: Counts
    before: Counts
    after: Counts
    trees: int

    @cached_property
    def _weights(self) -> Counts:
        """The pairs of hosts of each changed path; 0 if they have no path any more."""
        return np.where(self.after > 0, self.pairs, 0)

    @property
    def moved(self) -> int:
        """The number of ordered pairs of hosts that have another path."""
        return int(self._weights.sum())

    @property
    def mean_stretch(self) -> float:
        """The mean number of channels of the moved paths, over that in the intact plan."""
        before, after = (int((self._weights * hops).sum()) for hops in (self.before, self.after))
        return after / before if before else 1.0

    @property
    def max_stretch(self) -> float:
        """The largest ratio of the channels of a moved path to those that it had."""
        moves = self.after > 0
        return float((self.after[moves] / self.before[moves]).max(initial=1.0))

    def summary(self) -> dict[str, object]:
        """Return the metrics that ``knotless plan --without`` adds."""
        separated = hosts_by_part(self.plan.fabric, self.plan.failures)
        pairs = pairs_apart(separated)
        return {
            "failed": list(self.plan.failures.names),
            "repair": self.kind,
            "moved": self.moved,
            "mean_stretch": round(self.mean_stretch, 3),
            "max_stretch": round(self.max_stretch, 3),
            "unreachable": pairs,
            "separated": separated if pairs else [],
        }


def repair(plan: Plan, failures: Failures) -> Repair:
    """Return the repair of an intact ``plan`` for ``failures``.

    Fabric, channels, rows and VLANs stay those of the intact plan. Paths and broadcast trees that
    use no failed part stay. The others take shortest paths that fit into the VLANs and virtual
    channels of the plan and that close no cycle of dependencies with all others. If the intact
    plan has a cycle (under its flow control), the repaired plan may have one. If a path does not
    fit, dependencies of kept paths that are in its way are given up, those with the fewest paths,
    and these paths move too. If that does not help, the remaining parts of the fabric get a new
    plan each, by the same engine or, if it cannot route them, by up*/down*, with the virtual
    channels of the intact plan.

    With multipath, next hops are removed that failed or from which no next hop leads on; so all
    other choices stay. If some pair would have none, or a broadcast tree that moves would close a
    cycle with them, the remaining parts get new plans.

    Paths are moved by destination, then by distance to it, then by row. Among paths that fit, a
    path has the fewest channels, then the fewest new changes of priority, then the fewest kept and
    moved paths on its channels, then the lowest channel numbers.

    Parameters
    ----------
    plan : Plan
        The intact plan.
    failures : Failures
        The links and switches that carry no frames.

    Returns
    -------
    Repair
        The repaired plan, and what changed.

    Raises
    ------
    ValueError
        ``plan`` is not intact.
    PlanError
        A new plan needs more VLANs or memory than there may be.

    Examples
    --------
    >>> from knotless.routing.plan import make_plan
    >>> from knotless.topologies import load
    >>> plan = make_plan(load("torus,4,4"))
    >>> found = repair(plan, Failures.from_names(plan.fabric, ["s1-s2"]))
    >>> found.kind, found.moved
    ('repaired', 16)
    >>> [hop.switch for hop in found.plan.path("h1", "h2")]
    ['s1', 's4', 's3', 's2']

    """
    if plan.failures:
        raise ValueError("a repair starts from the intact plan")
    if not plan.choice.is_repairable:
        raise PlanError(f"plans of {plan.engine} cannot be repaired: plan what remains")
    began = time.perf_counter()
    kind: Kind
    moves: tuple[Counts, Counts, Counts]
    moved = _moves(plan, failures)
    if plan.next_hops is not None:
        kind, repaired = "repaired", _with_fewer_next_hops(plan, failures, moved)
        if repaired is None:
            kind, repaired = new_plan(plan, failures, FlowControl(moved["promise"]))
        moves = set_changes(plan, repaired)
    elif moved["unrouted"] is not None or moved["unrouted_tree"] is not None:
        kind, repaired = new_plan(plan, failures, FlowControl(moved["promise"]))
        moves = path_changes(plan, repaired)
    else:
        kind = "extended" if moved["extended"] else "repaired"
        repaired = _with_moves(plan, failures, moved)
        pairs = plan.senders[moved["row"]].astype(np.int64) * plan.receivers[moved["to"]]
        moves = pairs, moved["before"].astype(np.int64), moved["hops"].astype(np.int64)
    changed = plan.routes.tree_channels != repaired.routes.tree_channels
    trees = int(changed.any(axis=1).sum())
    if kind == "repaired" and not len(moves[0]) and not trees:
        kind = "none"
    elapsed_ms = 1000 * (time.perf_counter() - began)
    return Repair(plan, replace(repaired, routing_ms=elapsed_ms), kind, *moves, trees)


def _with_fewer_next_hops(plan: Plan, failures: Failures, moved: dict[str, Any]) -> Plan | None:
    """Return a plan with multipath without what failed; None if it leaves a pair without path.

    Also None if its broadcast trees, ``moved`` next to single paths, close a cycle.
    """
    sets = plan.next_hops
    if sets is None or moved["unrouted_tree"] is not None:
        return None
    left = without_channels(sets, plan.channels, failed_channels(plan, failures))
    part, has_hosts = np.array(parts(plan.fabric, failures)), plan.receivers > 0
    joined = (part[:, None] == part) & (part != FAILED) & has_hosts & has_hosts[:, None]
    np.fill_diagonal(joined, val=False)
    if (left.sizes == 0)[joined].any():
        return None
    trees = {key: moved[key] for key in ("tree_channels", "tree_priorities")}
    routes, request = replace(plan.routes, **trees), plan.settled_request()
    choice = plan.choice.with_next_hops(left)
    fewer = replace(plan, request=request, routes=routes, choice=choice, failures=failures)
    return fewer if has_no_cycle(fewer) or not has_no_cycle(plan) else None


def _moves(plan: Plan, failures: Failures) -> dict[str, Any]:
    """Return the paths and trees that move; see ``repair`` in ``knotless._core.graph``."""
    routes = plan.routes
    vlans = plan.vlans if plan.tagging == "switch" else plan.pair_vlans.reshape(-1)
    return core.repair(
        plan.channels.core,
        routes.expanded().core
        if isinstance(routes, TableRoutes)
        else (routes.channels, routes.priorities),
        (routes.tree_channels, routes.tree_priorities),
        plan.row_switch,
        np.ascontiguousarray(vlans, dtype=np.int32) - FIRST_VLAN,
        plan.request.vlans == "tree",
        plan.receivers > 0,
        failed_channels(plan, failures),
        np.array(parts(plan.fabric, failures), dtype=np.int32),
        plan.vcs,
        plan.flow_control.switch_links.by_channel,
    )


def failed_channels(plan: Plan, failures: Failures) -> NDArray[np.bool_]:
    """Return which channels must not carry frames, shape (channels,)."""
    leaving, index = plan.channels.leaving, plan.fabric.switch_index
    failed = np.zeros(len(plan.channels), dtype=np.bool_)
    for link in failures.dead_links(plan.fabric):
        failed[leaving[index[link.a], link.a_port]] = True
        failed[leaving[index[link.b], link.b_port]] = True
    return failed


def _with_moves(plan: Plan, failures: Failures, moved: dict[str, Any]) -> Plan:
    """Return the plan with the moved paths and trees."""
    trees = {key: moved[key] for key in ("tree_channels", "tree_priorities")}
    routes: Routes
    if isinstance(plan.routes, TableRoutes):
        tables = plan.routes.expanded()
        next_hop = moved["next_hop"].reshape(tables.next_hop.shape)
        # Also the entries that no path uses: the tables of a VLAN are merged, where an entry of one
        # would fill the gap that the others have towards another part.
        part = np.array(parts(plan.fabric, failures))
        apart = (part[:, None] != part) | (part[:, None] == FAILED)
        next_hop[:, apart & (plan.receivers > 0)] = -1
        changes = moved["changes"]
        routes = replace(tables, next_hop=core.NextHops(next_hop), changes=changes, **trees)
    else:
        channels, priorities = _paths(plan.routes, moved)
        routes = replace(plan.routes, channels=channels, priorities=priorities, **trees)
    request = plan.settled_request()
    repaired = replace(plan, request=request, routes=routes, failures=failures)
    if not plan.broadcast_links:
        return repaired
    had_path = (plan.routes.channels >= 0).any(axis=2)
    vlans = np.where(had_path, plan.pair_vlans, FIRST_VLAN).astype(np.int32)
    return with_broadcast_vlans(replace(repaired, pair_vlans=vlans))


def _paths(routes: ExplicitRoutes, moved: dict[str, Any]) -> tuple[Ints, Priorities]:
    """Return all paths, with those that moved in their new places."""
    row, to, hops = (moved[key] for key in ("row", "to", "hops"))
    longer = max(0, int(hops.max(initial=0)) - routes.channels.shape[2])
    room = ((0, 0), (0, 0), (0, longer))
    channels = np.pad(routes.channels, room, constant_values=-1)
    priorities = np.pad(routes.priorities, room)
    channels[row, to], priorities[row, to] = -1, 0
    place = np.arange(len(moved["channels"])) - np.repeat(np.cumsum(hops) - hops, hops)
    cells = np.repeat(row, hops), np.repeat(to, hops), place
    channels[cells], priorities[cells] = moved["channels"], moved["priorities"]
    return channels, priorities
