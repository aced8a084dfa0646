"""Paths in phases: channels have kinds, and the phase of a path says which kinds may follow.

A dragonfly's paths, for example, take a local, a global and a local channel at most. Each step
leads to a later phase, so that the priorities of the phases, and the order of channels that the
engine states, exclude cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from knotless._core.graph import StateGraph
from knotless.routing.graphs.channels import Channels, Ints, Priorities
from knotless.routing.graphs.state_graph import graph_of

NO_STEP = -1


@dataclass(frozen=True)
class Phases:
    """The phases of paths, and which may follow which.

    Attributes
    ----------
    following : array of int32, shape (phases, kinds)
        The phase after a channel of a kind, or -1 where the kind is not allowed. Paths begin in
        phase 0, and phases only rise.
    priority : array of uint8, shape (phases,)
        The priority of the channel that leads to each phase.

    """

    following: Ints
    priority: Priorities

    @classmethod
    def from_steps(cls, steps: Sequence[tuple[int, int, int]], priority: Sequence[int]) -> Phases:
        """Return the phases of (phase, kind, next phase) ``steps``."""
        kinds = 1 + max((kind for _, kind, _ in steps), default=0)
        following = np.full((len(priority), kinds), NO_STEP, dtype=np.int32)
        for phase, kind, later in steps:
            following[phase, kind] = later
        return cls(following, np.array(priority, dtype=np.uint8))

    def graph(self, channels: Channels, kind: Ints) -> StateGraph:
        """Return the graph of the legal paths; ``kind`` is that of each channel, shape (channels,).

        State p n + i of n switches is phase p at switch i.
        """
        count = len(channels.names)
        edges = []
        for phase in range(len(self.priority)):
            later = self.following[phase, kind]
            used = np.flatnonzero(later >= 0).astype(np.int32)
            tail = channels.tail[used] + np.int32(phase * count)
            head = channels.head[used] + (later[used] * count).astype(np.int32)
            edges.append((tail, head, used))
        switches = np.arange(count, dtype=np.int32)
        states = np.tile(switches, len(self.priority))
        return graph_of(channels, states, switches, edges, np.repeat(self.priority, count))

    def trees(self, channels: Channels, kind: Ints) -> tuple[Ints, Priorities]:
        """Return broadcast trees of legal paths and their priorities, shape (switches, switches).

        Trees grow level by level; of several channels that enter a switch, the first is taken. A
        switch that no legal extension enters has -1.
        """
        kinds = np.ascontiguousarray(kind, dtype=np.int32)
        return channels.core.phase_trees(kinds, self.following, self.priority)
