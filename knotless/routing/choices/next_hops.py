"""Choices among next hops: at each switch, a frame takes one of a set of channels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from knotless.routing.choices.choice import (
    Choice,
    Flows,
    Loads,
    Pick,
    Planned,
    PlannedPaths,
    Planning,
    RequestedChoice,
)
from knotless.routing.engine import Engine, next_hops_of
from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.graphs.next_hop_sets import NextHopSets
from knotless.routing.vlans.assignment import FIRST_VLAN


@dataclass(frozen=True)
class NextHopChoice(Choice):
    """A choice among ``sets`` of next hops. All hosts send in one VLAN."""

    sets: NextHopSets

    @property
    def next_hops(self) -> NextHopSets:
        """The sets."""
        return self.sets

    def with_next_hops(self, sets: NextHopSets) -> Self:
        """Return the same kind of choice among other next hops."""
        return replace(self, sets=sets)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of next hops, shape (destination switches, switches)."""
        return self.sets.sizes

    @property
    def split_sets(self) -> NextHopSets:
        """The sets that carry equal shares."""
        return self.sets

    def state_arrays(self, plan: PlannedPaths) -> dict[str, Any]:
        """Return the sets, and the priority of each host."""
        return {
            "vlan": plan.vlans.astype(np.uint16),
            "set_ends": self.sets.ends,
            "set_channels": self.sets.channels,
            "first_priority": np.ascontiguousarray(plan.routes.first_priorities),
        }

    def as_json(self, plan: PlannedPaths) -> dict[str, object]:
        """Return ``next_hops``: by the names of switch and destination switch, what to take."""
        switches, channels = plan.channels.names, plan.channels
        to_hosts = [to for to, name in enumerate(switches) if plan.fabric.hosts_at[name]]
        next_hops = {
            name: {
                switches[to]: self._listed(channels, switch, to) for to in to_hosts if to != switch
            }
            for switch, name in enumerate(switches)
        }
        return {"next_hops": next_hops}

    def _listed(self, channels: Channels, switch: int, to: int) -> list[int] | list[str]:
        """Return the output ports of one set."""
        return [int(channels.out_port[channel]) for channel in self.sets.choices(switch, to)]

    def hashed_hops(self, flows: Flows, pick: Pick) -> list[Ints]:
        """Return the channels of flows, of which each switch picks the next."""
        (plan, _, current, to), sets = flows, self.sets
        hops: list[Ints] = []
        while (moving := current != to).any():
            flow = np.flatnonzero(moving)
            here = to[flow], current[flow]
            place = pick(flow, current[flow], sets.sizes[here])
            channel = np.full(len(current), -1, dtype=np.int32)
            channel[flow] = sets.channels[sets.firsts[here] + place]
            current = current.copy()
            current[flow] = plan.channels.head[channel[flow]]
            hops.append(channel)
        return hops

    def split_loads(self, flows: Flows) -> dict[str, Loads]:
        """Return the loads if each set splits flows equally."""
        (plan, _, current, to), sets = flows, self.split_sets
        channels, count = plan.channels, len(plan.channels.names)
        loads = np.zeros(len(channels))
        cells = to.astype(np.int64) * count + current
        weights: NDArray[np.float64] = np.ones(len(cells))
        while len(cells):
            # Flows that meet at a switch on their way to another go on together.
            cells, merged = np.unique(cells, return_inverse=True)
            weights = np.bincount(merged, weights).astype(np.float64)
            to, current = np.divmod(cells, count)
            onward = to != current
            to, current, weights = to[onward], current[onward], weights[onward]
            size = sets.sizes[to, current]
            each = np.repeat(np.arange(len(to)), size)
            place = np.arange(len(each)) - np.repeat(np.cumsum(size) - size, size)
            channel = sets.channels[sets.firsts[to, current][each] + place]
            share = (weights / size)[each]
            loads += np.bincount(channel, share, len(channels))
            cells, weights = to[each] * count + channels.head[channel], share
        return {"split": loads}


class EqualNextHops(NextHopChoice, RequestedChoice):
    """A choice among all equal next hops of an engine."""

    @classmethod
    def is_possible_with(cls, engine: Engine) -> bool:
        """Return whether the engine has several next hops."""
        return engine.next_hops is not None

    @classmethod
    def planned(cls, planning: Planning) -> Planned:
        """Return all next hops of the engine, in one VLAN."""
        planning.request.refuse_single_path_options("multipath")
        vlans = np.full_like(planning.pair_vlans, FIRST_VLAN)
        return Planned(planning.routes, vlans, cls(next_hops_of(planning.engine, planning.task)))
