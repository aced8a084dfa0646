"""Choices at the source: for each frame, its first switch takes a direct path or one of others.

The others go directly to an intermediate switch, or to any switch of an intermediate group, and
from there directly to the destination. A label of the frame says which intermediate it goes to, or
that it goes directly, so that the later switches forward by (label, destination). The virtual
channel depends on the kinds of the channels that a frame takes, as in the literature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.base.memory import Cost, refuse_beyond
from knotless.routing.choices.choice import Binding, Choice, Flows, Loads, PlannedPaths
from knotless.routing.graphs.channels import Channels, Ints, Priorities
from knotless.routing.graphs.segments import Choices
from knotless.routing.graphs.state_graph import FAR, Mask
from knotless.routing.graphs.task import Task

SHARES = {"minimal": 0.0, "half": 0.5, "valiant": 1.0}
"""Shares of frames that go over an intermediate, for which loads are exact.

Which share does depends on queues, and is for the simulator.
"""


@dataclass(frozen=True)
class SourceTables:
    """The next hops and virtual channels of frames.

    Attributes
    ----------
    direct : array of int32, shape (destination switches, switches)
        The channel to each destination; -1: none.
    towards : array of int32, shape (intermediates, switches)
        The channel to each intermediate; -1: none.
    intermediate : array of int32, shape (switches,)
        The intermediate that each switch is, or is part of.
    kind : array of uint8, shape (channels,)
        The kind of each channel.
    rises : array of bool, shape (kinds, kinds)
        Whether a frame that goes from a channel of the first kind to one of the second moves to the
        next virtual channel. Frames begin on virtual channel 0.

    """

    direct: Ints
    towards: Ints
    intermediate: Ints
    kind: Priorities
    rises: Mask

    def hops(
        self, channels: Channels, source: Ints, target: Ints, over: Ints
    ) -> Iterator[tuple[Ints, Ints]]:
        """Follow paths from switches to others, directly (``over`` -1) or over an intermediate.

        Yields, hop by hop, the channel of each path and its virtual channel; -1 where it has ended.
        A path that does not end is followed for as many hops as there are switches.
        """
        current, held, vc = source.copy(), np.full_like(source, -1), np.zeros_like(source)
        left = over.copy()
        for _ in channels.names:
            left[self.intermediate[current] == left] = -1
            channel = np.where(left < 0, self.direct[target, current], self.towards[left, current])
            channel = np.where((current == target) & (left < 0), np.int32(-1), channel)
            moving = channel >= 0
            if not moving.any():
                return
            rising = self.rises[self.kind[held], self.kind[channel]] & (held >= 0)
            vc = vc + rising
            yield channel, np.where(moving, vc, -1)
            current, held = np.where(moving, channels.head[channel], current), channel


@dataclass(frozen=True)
class SourceChoices(Choice):
    """The paths from each switch with hosts to each, of which its first switch takes any one.

    Attributes
    ----------
    tables : SourceTables
        Where frames go on.
    ends : array of uint32, shape (destination switches, switches)
        The end of the intermediates of each pair in ``over``.
    over : array of uint16
        The intermediates, ascending for each pair.
    vc_count : int
        The number of virtual channels of all paths.

    """

    tables: SourceTables
    ends: NDArray[np.uint32]
    over: NDArray[np.uint16]
    vc_count: int

    name: ClassVar[str] = "ugal"
    binding: ClassVar[Binding] = Binding.QUEUES
    no_switch: ClassVar[str] = (
        "switches would have to choose a path by the lengths of their queues, which OpenFlow and"
        " 802.1Q ones cannot; use plan, analyse and simulate, or another engine"
    )
    is_repairable: ClassVar[bool] = False
    shared_vlans: ClassVar[str] = (
        "one for frames on their way to their destination, and one for each intermediate"
    )
    default_loads: ClassVar[str] = "half"

    @property
    def vcs(self) -> int:
        """The number of virtual channels of all paths."""
        return self.vc_count

    @property
    def vlan_count(self) -> int:
        """The number of labels: frames carry them as VLANs."""
        return self.labels

    @property
    def labels(self) -> int:
        """The number of labels: one for direct paths, and one for each intermediate."""
        return 1 + len(self.tables.towards)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of intermediates, shape (destination switches, switches)."""
        flat = np.diff(self.ends.reshape(-1).astype(np.int64), prepend=0)
        return flat.reshape(self.ends.shape)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of paths of each pair, shape (destination switches, switches)."""
        return self.counts + (self.tables.direct >= 0)

    def between(self, switch: int, destination: int) -> list[int]:
        """Return the intermediates over which frames from ``switch`` may go."""
        end = int(self.ends[destination, switch])
        return [int(i) for i in self.over[end - int(self.counts[destination, switch]) : end]]

    def as_json(self, plan: PlannedPaths) -> dict[str, object]:
        """Return the tables and choices for :func:`json.dumps`.

        ``direct`` has the output (``s1:2``) by the names of the switch and of the destination
        switch, of those with hosts; ``towards`` by the switch and the number of the intermediate;
        ``over`` the numbers of the intermediates of which one can be chosen. ``intermediate`` has
        the number of each switch. Frames begin on virtual channel 0, and move to the next one where
        the ``kind`` of the output before and that of the output after are a pair in ``rises``.
        """
        tables, channels, names = self.tables, plan.channels, plan.channels.names
        output = [channels.name(channel, 0).rpartition("/")[0] for channel in range(len(channels))]
        to_hosts = [number for number, name in enumerate(names) if plan.fabric.hosts_at[name]]

        def listed(table: Ints, goals: Mapping[int, str], switch: int) -> dict[str, str]:
            entries = {name: int(table[goal, switch]) for goal, name in goals.items()}
            return {name: output[channel] for name, channel in entries.items() if channel >= 0}

        switches = {to: names[to] for to in to_hosts}
        numbers = {number: str(number) for number in range(len(tables.towards))}
        return {
            "direct": {
                name: listed(tables.direct, switches, switch) for switch, name in enumerate(names)
            },
            "towards": {
                name: listed(tables.towards, numbers, switch) for switch, name in enumerate(names)
            },
            "over": {
                names[switch]: {
                    names[to]: self.between(switch, to) for to in to_hosts if to != switch
                }
                for switch in to_hosts
            },
            "intermediate": dict(zip(names, tables.intermediate.tolist(), strict=True)),
            "kind": dict(zip(output, tables.kind.tolist(), strict=True)),
            "rises": np.argwhere(tables.rises).tolist(),
        }

    def state_arrays(self, plan: PlannedPaths) -> dict[str, Any]:
        """Return the tables, and the intermediates of each pair."""
        tables = self.tables
        return {
            "vlan": plan.vlans.astype(np.uint16),
            "direct": np.ascontiguousarray(tables.direct),
            "towards": np.ascontiguousarray(tables.towards),
            "intermediate": tables.intermediate.astype(np.uint32),
            "kind": tables.kind,
            "rises": tables.rises,
            "choice_ends": self.ends,
            "over": self.over,
        }

    def split_loads(self, flows: Flows) -> dict[str, Loads]:
        """Return the loads for each of :data:`SHARES`.

        Frames over intermediates use all of them equally; those that have none go directly.
        """
        channels, count = flows.plan.channels, len(flows.plan.channels.names)
        ends = flows.target.astype(np.int64) * count + flows.source
        cells, weights = np.unique(ends, return_counts=True)
        target, source = (part.astype(np.int32) for part in np.divmod(cells, count))
        counts = self.counts[target, source]
        sizes = np.maximum(counts, 1)
        each = np.repeat(np.arange(len(cells)), sizes)
        place = np.arange(len(each)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        first = self.ends[target, source].astype(np.int64) - counts
        padded = np.append(self.over.astype(np.int32), np.int32(-1))
        over = np.where(counts[each] > 0, padded[first[each] + place], np.int32(-1))
        directly = np.full(len(cells), -1, dtype=np.int32)
        direct = self._loads(channels, source, target, directly, weights.astype(np.float64))
        shares = weights[each] / sizes[each]
        around = self._loads(channels, source[each], target[each], over, shares)
        return {name: (1 - share) * direct + share * around for name, share in SHARES.items()}

    def _loads(
        self, channels: Channels, source: Ints, target: Ints, over: Ints, weights: Loads
    ) -> Loads:
        """Return the load of each channel by paths of these ``weights``."""
        loads = np.zeros(len(channels))
        for channel, _ in self.tables.hops(channels, source, target, over):
            moving = channel >= 0
            loads += np.bincount(channel[moving], weights[moving], len(channels))
        return loads


class StagedTable:
    """Channels to goals, stage by stage backwards from them, so that paths have a stated form.

    Attributes
    ----------
    channel : array of int32, shape (goals, switches)
        The channel by which each switch sends; -1: it is a goal, or has no path.
    hops : array of int32, same shape
        The channels on its path.

    """

    def __init__(self, channels: Channels, kind: Ints, goals: Mask) -> None:
        """Begin with the ``goals``: which switches each of them is, shape (goals, switches)."""
        self._channels, self._kind = channels, kind
        self.channel: Ints = np.full(goals.shape, -1, dtype=np.int32)
        self.hops: Ints = np.where(goals, 0, FAR).astype(np.int32)

    def extend(self, kind: int, into: Mask) -> Mask:
        """Let further switches send by a channel of ``kind`` into some others.

        A switch takes a channel of the shortest path; of several, that of number (goal + switch)
        modulo how many there are. Returns the switches, same shape as ``into``.
        """
        tail, head = self._channels.tail, self._channels.head
        goals, count = self.hops.shape
        joins = into[:, head] & (self._kind == kind) & (self.hops >= FAR)[:, tail]
        goal, channel = np.nonzero(joins)
        key, length = goal * count + tail[channel], self.hops[goal, head[channel]] + 1
        shortest = np.full(goals * count, FAR, dtype=np.int32)
        np.minimum.at(shortest, key, length)
        kept = length == shortest[key]
        choices = Choices.grouped(channel[kept].astype(np.int32), key[kept], goals * count)
        turn = np.arange(goals)[:, None] + np.arange(count)
        chosen = choices.pick(np.arange(goals * count), turn.reshape(-1)).reshape(goals, count)
        reached = chosen >= 0
        self.channel = np.where(reached, chosen, self.channel)
        self.hops = np.where(reached, shortest.reshape(goals, count), self.hops)
        return reached


def source_choices(task: Task, tables: SourceTables) -> SourceChoices:
    """Return all paths over ``tables`` that pass no switch twice.

    Between switches of one intermediate there is the direct path alone.

    Raises
    ------
    PlanError
        Memory is short.

    """
    channels, count = task.channels, len(task.channels.names)
    numbers = np.arange(count, dtype=np.int32)
    with_hosts = numbers[task.receivers > 0]
    intermediates = np.arange(len(tables.towards), dtype=np.int32)
    needed = Cost.INTERMEDIATE.bytes_for(len(with_hosts) ** 2 * len(intermediates))
    refuse_beyond(f"{task.fabric.name}: all choices at sources", needed, PlanError)
    counts, over, highest = np.zeros((count, count), dtype=np.int64), [], 0
    own = tables.intermediate
    for target in with_hosts:
        others = with_hosts[own[with_hosts] != own[target]]
        source = np.repeat(others, len(intermediates))
        via = np.tile(intermediates, len(others))
        fits = (via != own[source]) & (via != own[target])
        source, via = source[fits], via[fits]
        arrives, vc = _followed(channels, tables, source, target, via)
        source, via = source[arrives], via[arrives]
        over.append(via.astype(np.uint16))
        counts[target] = np.bincount(source, minlength=count)
        direct = with_hosts[with_hosts != target]
        _, of_direct = _followed(channels, tables, direct, target, np.full_like(direct, -1))
        highest = max(highest, int(vc[arrives].max(initial=0)), int(of_direct.max(initial=0)))
    ends = np.cumsum(counts.reshape(-1)).astype(np.uint32).reshape(count, count)
    return SourceChoices(tables, ends, np.concatenate([*over, np.zeros(0, np.uint16)]), 1 + highest)


def _followed(
    channels: Channels, tables: SourceTables, source: Ints, target: np.int32, via: Ints
) -> tuple[Mask, Ints]:
    """Return whether each path arrives and passes no switch twice, and its highest VC."""
    to = np.full_like(source, target)
    current: Ints = source
    highest: Ints = np.zeros_like(source)
    passed: list[Ints] = [source]
    for channel, vc in tables.hops(channels, source, to, via):
        current = np.where(channel >= 0, channels.head[channel], current)
        passed.append(np.where(channel >= 0, current, np.int32(-1)))
        highest = np.maximum(highest, vc)
    visits = np.sort(np.stack(passed, axis=1), axis=1)
    again = ((visits[:, 1:] == visits[:, :-1]) & (visits[:, 1:] >= 0)).any(axis=1)
    return (current == target) & ~again, highest
