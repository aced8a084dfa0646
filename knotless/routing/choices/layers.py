"""Layers: several complete routings of one fabric, of which a hash of the source chooses one.

A layer has one path for each pair of a source and a destination. The first switch of a frame tags
it with a VLAN of a layer, which it keeps, so that all frames of two hosts take one path. A plan
cannot deadlock if the union of all layers has no cycle of channel dependencies; layers that close
one together have virtual channels of their own.

References
----------
Besta, Schneider, Cynk, Konieczny, Henriksson, Di Girolamo, Singla, Hoefler: FatPaths: routing in
supercomputers and data centers when shortest paths fall short, SC 2020.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knotless._core.graph import is_acyclic
from knotless.base.errors import PlanError
from knotless.routing.choices.choice import (
    Binding,
    Flows,
    Loads,
    Pick,
    Planned,
    PlannedPaths,
    Planning,
    RequestedChoice,
)
from knotless.routing.choices.single_path import listed_sources
from knotless.routing.engine import Engine, engines
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, Channels, Ints, Priorities
from knotless.routing.graphs.task import MAX_VCS, Task
from knotless.routing.routes import ExplicitRoutes, Routes, dependencies
from knotless.routing.vlans.assignment import FIRST_VLAN, assign_vlans

DEFAULT_LAYERS = 4


@dataclass(frozen=True)
class Layers(RequestedChoice):
    """The paths of all layers. Of a plan's ``routes``, only rows and broadcast trees count.

    Attributes
    ----------
    channels : array of int32, shape (layers, rows, switches, longest)
        The channels of each path, then -1; rows are those of the plan's ``routes``.
    priorities : array of uint8, same shape
        The priority of each of those channels.
    vlans : array of int32, shape (layers, rows)
        The VLAN of each row in each layer.

    """

    channels: Ints
    priorities: Priorities
    vlans: Ints

    name: ClassVar[str] = "layers"
    binding: ClassVar[Binding] = Binding.HASH
    no_switch: ClassVar[str] = (
        "first switches would have to choose a VLAN by a hash, for which there are no rules; use"
        " plan, analyse and simulate, or omit --multipath layers"
    )
    is_repairable: ClassVar[bool] = False
    description: ClassVar[str] = "a hash chooses one of several complete routings"
    has_layers: ClassVar[bool] = True

    @classmethod
    def is_possible_with(cls, engine: Engine) -> bool:
        """Return whether the engine has other paths for other layers."""
        return engine.has_layers

    @classmethod
    def planned(cls, planning: Planning) -> Planned:
        """Return the layers, and the routes and VLANs of the first."""
        task, request, channels = planning.task, planning.request, planning.task.channels
        request.refuse_single_path_options("multipath")
        routes = routes_of_layers(planning.engine, task, request.layers)
        vcs, max_vlans = request.vcs, request.max_vlans
        layers = stacked(channels, routes, task.receivers, vcs=vcs, max_vlans=max_vlans)
        vlans = np.repeat(layers.vlans[0][:, None], len(channels.names), axis=1)
        return Planned(layers.routes_of(routes[0], 0), vlans, layers)

    @property
    def count(self) -> int:
        """The number of layers."""
        return len(self.channels)

    @property
    def vcs(self) -> int:
        """The number of virtual channels that all layers use."""
        return 1 + int(self.priorities[self.channels >= 0].max(initial=0))

    def routes_of(self, first: Routes, layer: int) -> ExplicitRoutes:
        """Return the paths of a layer, with the rows and broadcast trees of the ``first``."""
        trees = first.tree_channels, first.tree_priorities
        return ExplicitRoutes(first.rows, self.channels[layer], self.priorities[layer], *trees)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of different paths in all layers, shape (rows, switches)."""
        _, rows, switches, longest = self.channels.shape
        if not longest:
            return np.zeros((rows, switches), dtype=np.int64)
        sizes = np.zeros((rows, switches), dtype=np.int64)
        for layer in range(self.count):
            earlier = (self.channels[:layer] == self.channels[layer]).all(axis=3).any(axis=0)
            sizes += ~earlier & (self.channels[layer, :, :, 0] >= 0)
        return sizes

    @property
    def vlan_count(self) -> int:
        """The number of VLANs of all layers."""
        return int(self.vlans.max()) - FIRST_VLAN + 1

    def summary(self) -> dict[str, object]:
        """Return also the number of layers."""
        return {**super().summary(), "layers": self.count}

    def as_json(self, plan: PlannedPaths) -> dict[str, object]:
        """Return ``layers``, with the ``sources`` of each (:func:`listed_sources`)."""
        layers = (
            listed_sources(plan, self.routes_of(plan.routes, layer), self.vlans[layer])
            for layer in range(self.count)
        )
        return {"layers": [{"sources": sources} for sources in layers]}

    def state_arrays(self, plan: PlannedPaths) -> dict[str, Any]:
        """Return the paths of all layers."""
        count, rows, switches, longest = self.channels.shape
        shape = (count * rows, switches, longest)
        return {
            "vlan": self.vlans.reshape(-1).astype(np.uint16),
            "flood_vlan": np.tile(plan.vlans, count).astype(np.uint16),
            "channels": np.ascontiguousarray(self.channels.reshape(shape)),
            "priorities": np.ascontiguousarray(self.priorities.reshape(shape)),
            "longest": longest,
            "layers": count,
        }

    def hashed_hops(self, flows: Flows, pick: Pick) -> list[Ints]:
        """Return the channels of the layer that the first switch picks."""
        count = len(flows.source)
        layer = pick(np.arange(count), flows.source, np.full(count, self.count))
        return list(self.channels[layer, flows.row, flows.target].T)

    def split_loads(self, flows: Flows) -> dict[str, Loads]:
        """Return the loads if all layers carry an equal share of each flow."""
        taken = self.channels[:, flows.row, flows.target]
        counts = np.bincount(taken[taken >= 0], minlength=len(flows.plan.channels))
        return {"split": counts / self.count}


def routes_of_layers(engine: Engine, task: Task, count: int | None) -> list[Routes]:
    """Return the routes of each layer: of an engine with a root from other roots.

    Roots are spread evenly over the switches, beginning with that of the task. Each layer of such
    an engine has one virtual channel. Other engines go by the number of the layer.

    Raises
    ------
    PlanError
        The engine has no other paths for other layers, or it cannot route
        the fabric.

    """
    if not engine.has_layers:
        having = [name for name, other in engines().items() if other.has_layers]
        raise PlanError(
            f"multipath layers: {engine.name} has no other paths for other layers; engines that do"
            f" are {', '.join(having)}"
        )
    count = DEFAULT_LAYERS if count is None else count
    first, switches = task.root or 0, len(task.channels.names)
    routes = []
    for layer in range(count):
        of_layer = replace(task, layer=layer)
        if engine.has_root:
            root = (first + layer * switches // count) % switches
            of_layer = replace(of_layer, root=root, vcs=1)
        routes.append(engine.route(of_layer))
    return routes


def stacked(
    channels: Channels,
    routes: Sequence[Routes],
    receivers: Ints,
    *,
    vcs: int | None,
    max_vlans: int,
) -> Layers:
    """Return layers of the paths of ``routes``, which have the same rows.

    Each layer begins on the first virtual channel from which its dependencies close no cycle with
    those of the layers before and of the first layer's broadcasts, and from which no switch would
    have to give two priorities to frames that have one and come and go on the same channels.

    Raises
    ------
    PlanError
        More virtual channels or VLANs are needed than there may be.

    """
    longest = max(one.channels.shape[2] for one in routes)
    paths = np.stack([_padded(one.channels, longest, -1) for one in routes])
    priorities = np.stack([_padded(one.priorities, longest, 0) for one in routes])
    most, placed = vcs or MAX_VCS, _Placed(channels, receivers)
    first = routes[0]
    for number in range(len(routes)):
        for offset in range(most):
            moved = np.where(paths[number] >= 0, priorities[number] + np.uint8(offset), 0)
            trees = first if number == 0 else None
            if int(moved.max(initial=0)) < most and placed.fits(paths[number], moved, trees):
                priorities[number] = moved
                break
        else:
            raise PlanError(
                f"layer {number + 1} of {len(routes)} closes a cycle with those before it on each"
                f" of {most} virtual channels; use fewer layers"
            )
    count, rows, switches, _ = paths.shape
    used = np.where((receivers > 0)[None, :, None], paths.reshape(count * rows, switches, -1), -1)
    numbers = assign_vlans(channels, used.astype(np.int32), limit=max_vlans)
    return Layers(paths, priorities, numbers[:, 0].reshape(count, rows))


class _Placed:
    """The dependencies and changes of priority of the layers that have their virtual channels."""

    def __init__(self, channels: Channels, receivers: Ints) -> None:
        self._channels, self._receivers = channels, receivers
        self._edges: Ints = np.zeros((2, 0), dtype=np.int32)
        self._changes: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)

    def fits(self, paths: Ints, priorities: Priorities, trees: Routes | None) -> bool:
        """Add a layer, with the broadcast trees of ``trees``, and return true, or return false."""
        count = len(self._channels.names)
        none = np.full((count, count), -1, dtype=np.int32)
        routes = ExplicitRoutes(
            np.zeros(0, dtype=np.int32),
            paths,
            priorities,
            none if trees is None else trees.tree_channels,
            none.astype(np.uint8) if trees is None else trees.tree_priorities,
        )
        edges = np.stack(dependencies(self._channels, routes, self._receivers))
        edges = np.unique(np.concatenate([self._edges, edges], axis=1), axis=1)
        changes = np.concatenate([self._changes, self._changes_of(routes)])
        changes = np.unique(changes, axis=0)
        if len(np.unique(changes[:, 0])) < len(changes):
            return False
        nodes = len(self._channels) * VCS_PER_CHANNEL
        if not is_acyclic(nodes, *(part.astype(np.int32) for part in edges)):
            return False
        self._edges, self._changes = edges, changes
        return True

    def _changes_of(self, routes: ExplicitRoutes) -> NDArray[np.int64]:
        """Return (both channels and the priority before, the priority after) of each step."""
        paths, vcs = routes.channels[:, self._receivers > 0], routes.priorities
        vcs = vcs[:, self._receivers > 0]
        before, after = paths[:, :, :-1].astype(np.int64), paths[:, :, 1:].astype(np.int64)
        step = (before * len(self._channels) + after) * VCS_PER_CHANNEL + vcs[:, :, :-1]
        used = after >= 0
        return np.unique(np.stack([step[used], vcs[:, :, 1:][used]], axis=1), axis=0)


def _padded(values: NDArray[np.generic], longest: int, fill: int) -> NDArray[np.generic]:
    missing = longest - values.shape[2]
    return np.pad(values, ((0, 0), (0, 0), (0, missing)), constant_values=fill)
