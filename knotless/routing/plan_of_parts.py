"""New plans for the parts of a degraded fabric, as one plan of the intact fabric.

This is what a repair does if paths cannot be moved one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from knotless._core.graph import is_acyclic
from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.routing.engine import engine_named
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, Channels, Ints
from knotless.routing.graphs.dependencies import merged
from knotless.routing.graphs.next_hop_repair import changed_paths, path_lengths, set_dependencies
from knotless.routing.graphs.next_hop_sets import NextHopSets
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.routing.routes import ExplicitRoutes, Routes, dependencies
from knotless.routing.vlans.assignment import FIRST_VLAN
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures, components

LAST_RESORT = "updown"
Kind = Literal["replanned", "updown"]
Counts = NDArray[np.int64]


def new_plan(intact: Plan, failures: Failures, promise: FlowControl) -> tuple[Kind, Plan]:
    """Return a new plan for what the failures leave, and which engine made it.

    The plan has the fabric, channels and request of the ``intact`` one, and no more virtual
    channels. ``promise`` is the flow control under which it has no cycle.

    Raises
    ------
    PlanError
        It needs more VLANs or memory than there may be.

    """
    parts = list(components(intact.fabric, failures))
    try:
        plan = _joined(
            intact, failures, [make_plan(part, _request(intact, part)) for part in parts]
        )
        if _keeps(plan, promise):
            return "replanned", plan
    except PlanError:
        pass  # the engine cannot route what is left; up*/down* can
    # Under PAUSE, several virtual channels of up*/down* have no cycle either.
    again = [make_plan(part, _request(intact, part, LAST_RESORT)) for part in parts]
    return "updown", _joined(intact, failures, again)


def _request(intact: Plan, part: Fabric, engine: str | None = None) -> PlanRequest:
    """Return the request for one part."""
    name = engine or intact.engine
    root = intact.request.root
    has_root = engine_named(name).has_root and root in part.switch_index
    return intact.request.but(
        engine=name, vcs=intact.vcs, root=root if has_root else None, multicast={}
    )


def _keeps(plan: Plan, promise: FlowControl) -> bool:
    """Tell whether a plan has no cycle of dependencies under the flow control ``promise``."""
    links = promise.switch_links
    if not links.pauses:
        return True
    if plan.next_hops is not None:
        return has_no_cycle(plan)
    unmerged = dependencies(plan.channels, plan.routes, plan.receivers)
    before, after = (merged(nodes, links) for nodes in unmerged)
    return is_acyclic(len(plan.channels) * VCS_PER_CHANNEL, before, after)


def has_no_cycle(plan: Plan) -> bool:
    """Tell whether a plan with multipath has no cycle of dependencies, of all priorities together.

    The union of all choices counts, and every switch as one at which packets begin.
    """
    if plan.next_hops is None:
        raise ValueError("the plan has one path for each pair")
    trees, channels = plan.routes.tree_channels, plan.channels
    source, target = np.nonzero(trees >= 0)
    below = trees[source, target]
    above = trees[source, channels.tail[below]]
    before, after = set_dependencies(plan.next_hops, channels)
    return is_acyclic(
        len(channels),
        np.concatenate([before, above[above >= 0]]),
        np.concatenate([after, below[above >= 0]]),
    )


@dataclass(frozen=True)
class _Place:
    """The place of a part in the whole fabric: its switches and channels, and its first row."""

    plan: Plan
    switches: Ints
    channels: Ints
    row: int

    @property
    def rows(self) -> slice:
        """The rows of the part."""
        return slice(self.row, self.row + len(self.plan.vlans))

    def whole(self, channels: Ints) -> Ints:
        """Return the numbers in the whole fabric of an array of the part's channels, or -1."""
        return np.append(self.channels, np.int32(-1))[channels]


def _joined(intact: Plan, failures: Failures, plans: list[Plan]) -> Plan:
    """Return the plans of all parts as one plan of the whole fabric."""
    fabric, switches = intact.fabric, len(intact.fabric.switches)
    places = list(_places(intact, plans))
    of_host = {
        host.name: place.row + int(row)
        for place in places
        for host, row in zip(place.plan.fabric.hosts, place.plan.routes.rows, strict=True)
    }
    count = sum(len(plan.vlans) for plan in plans)
    # The hosts of a failed switch have a row without paths.
    dead = {name: count + i for i, name in enumerate(failures.switches)}
    rows = [of_host[h.name] if h.name in of_host else dead[h.switch] for h in fabric.hosts]
    used, numbers = np.unique(rows, return_inverse=True)
    longest = max((plan.routes.channels.shape[2] for plan in plans), default=0)
    shape = (count + len(dead), switches, longest)
    channels: Ints = np.full(shape, -1, dtype=np.int32)
    priorities = np.zeros(shape, dtype=np.uint8)
    trees: Ints = np.full((switches, switches), -1, dtype=np.int32)
    tree_priorities = np.zeros(trees.shape, dtype=np.uint8)
    vlans: Ints = np.full(shape[:2], FIRST_VLAN, dtype=np.int32)
    for place in places:
        part, switches_of_part = place.plan, place.switches
        hops = part.routes.channels.shape[2]
        channels[place.rows, switches_of_part, :hops] = place.whole(part.routes.channels)
        priorities[place.rows, switches_of_part, :hops] = part.routes.priorities
        trees[np.ix_(switches_of_part, switches_of_part)] = place.whole(part.routes.tree_channels)
        tree_priorities[np.ix_(switches_of_part, switches_of_part)] = part.routes.tree_priorities
        vlans[place.rows] = part.vlans[:, None]
        vlans[place.rows, switches_of_part] = part.pair_vlans
    routes = ExplicitRoutes(
        numbers.astype(np.int32), channels[used], priorities[used], trees, tree_priorities
    )
    links = {
        vlan: tuple(sorted(chain.from_iterable(_links(intact, place, vlan) for place in places)))
        for vlan in sorted({vlan for plan in plans for vlan in plan.broadcast_links})
    }
    request, whole = intact.settled_request(), intact.channels
    choice = intact.choice
    if intact.next_hops is not None:
        choice = choice.with_next_hops(_joined_sets(places, switches))
    return Plan(fabric, request, whole, routes, vlans[used], 0.0, links, failures, choice)


def _joined_sets(places: list[_Place], switches: int) -> NextHopSets:
    """Return the next hops of all parts as those of the whole fabric."""
    by_cell: dict[int, Ints] = {}
    for place in places:
        if (sets := place.plan.next_hops) is None:
            raise ValueError("a part has one path for each pair")
        sizes, firsts, numbers = sets.sizes, sets.firsts, place.switches.tolist()
        for to, switch in np.argwhere(sizes > 0).tolist():
            taken = sets.channels[firsts[to, switch] : firsts[to, switch] + sizes[to, switch]]
            by_cell[numbers[to] * switches + numbers[switch]] = np.sort(place.channels[taken])
    ends = np.zeros(switches * switches, dtype=np.int64)
    ends[list(by_cell)] = [len(channels) for channels in by_cell.values()]
    flat = [by_cell[cell] for cell in sorted(by_cell)] or [np.empty(0, dtype=np.int32)]
    shape = (switches, switches)
    return NextHopSets(np.cumsum(ends).astype(np.uint32).reshape(shape), np.concatenate(flat))


def _links(intact: Plan, place: _Place, vlan: int) -> Iterable[int]:
    """Return the links of a broadcast VLAN in one part, each as its lower channel."""
    links = place.channels[list(place.plan.broadcast_links.get(vlan, ()))]
    lower: list[int] = np.minimum(links, intact.channels.reverse[links]).tolist()
    return lower


def _places(intact: Plan, plans: Iterable[Plan]) -> Iterator[_Place]:
    row = 0
    for plan in plans:
        index = intact.fabric.switch_index
        switches = np.array([index[name] for name in plan.channels.names], dtype=np.int32)
        yield _Place(plan, switches, _channel_map(intact.channels, switches, plan.channels), row)
        row += len(plan.vlans)


def _channel_map(whole: Channels, switches: Ints, part: Channels) -> Ints:
    """Return the number in ``whole`` of each channel of ``part``."""
    ends = zip(switches[part.tail].tolist(), part.out_port.tolist(), strict=True)
    return np.array([whole.leaving[end] for end in ends], dtype=np.int32)


def path_changes(intact: Plan, repaired: Plan) -> tuple[Counts, Counts, Counts]:
    """Return ordered pairs of hosts, channels before and channels after of each changed path."""
    # Rows may be numbered differently, so hosts with the same rows in both are compared.
    rows, hosts = np.unique(
        np.stack([intact.routes.rows, repaired.routes.rows]), axis=1, return_counts=True
    )
    changes: list[Counts] = [np.empty((3, 0), dtype=np.int64)]
    for old, new, count in zip(*rows.tolist(), hosts.tolist(), strict=True):
        paths = [_nodes(plan.routes, row) for plan, row in ((intact, old), (repaired, new))]
        shared = min(path.shape[1] for path in paths)
        lengths = [np.count_nonzero(path >= 0, axis=1) for path in paths]
        differ = (paths[0][:, :shared] != paths[1][:, :shared]).any(axis=1)
        differ |= lengths[0] != lengths[1]
        differ &= intact.receivers > 0
        pairs = count * intact.receivers[differ]
        changes.append(np.stack([pairs, lengths[0][differ], lengths[1][differ]]).astype(np.int64))
    pairs, old_hops, new_hops = np.concatenate(changes, axis=1)
    return pairs, old_hops, new_hops


def set_changes(intact: Plan, repaired: Plan) -> tuple[Counts, Counts, Counts]:
    """Return the same of two plans with multipath; the paths of a pair are equally long."""
    old, new, channels = intact.next_hops, repaired.next_hops, intact.channels
    if old is None or new is None:
        raise ValueError("a plan has one path for each pair")
    hosts = intact.receivers.astype(np.int64)
    changed = changed_paths(old, new, channels) & (hosts > 0) & (hosts > 0)[:, None]
    lengths = (path_lengths(sets, channels)[changed] for sets in (old, new))
    before, after = lengths
    return (hosts[:, None] * hosts)[changed], before, after


def _nodes(routes: Routes, row: int) -> Ints:
    """Return (switches, longest): the virtual channels of the paths of a row, then -1."""
    channels = routes.channels[row]
    return np.where(
        channels >= 0, channels * VCS_PER_CHANNEL + routes.priorities[row], np.int32(-1)
    )
