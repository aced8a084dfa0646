"""Sets of next hops: by destination, all channels of which a packet takes any one.

A set depends on the switch and the destination alone, as in the tables of switches, and not on the
channel by which a packet has come. Therefore a path of up*/down* goes down as soon as a path that
only goes down leads to its destination: then no packet that came down meets a set with channels up.
In trees by levels these are all shortest paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.base.memory import Cost, refuse_beyond
from knotless.routing.graphs.channels import Ints, Priorities
from knotless.routing.graphs.state_graph import FAR, Mask, graph_of, plain_graph
from knotless.routing.graphs.task import Task


@dataclass(frozen=True)
class NextHopSets:
    """The next hops at each switch to each destination switch.

    Attributes
    ----------
    ends : array of uint32, shape (destination switches, switches)
        The end of each set in ``channels``; it begins where the one before it ends.
    channels : array of int32
        All sets, one after the other. Each is ascending, or with ``priorities`` in the order of
        preference.
    priorities : array of uint8, same shape as channels, or None
        The virtual channel on each, of which packets take the first that is free; None: packets
        take any one, and keep the virtual channel with which they were admitted.
    stays : bool
        With ``priorities``, whether packets that have left virtual channel 0 never return to it.

    """

    ends: NDArray[np.uint32]
    channels: Ints
    priorities: Priorities | None = None
    stays: bool = False

    def choices(self, switch: int, destination: int) -> list[int]:
        """Return the channels that a packet at ``switch`` may take; none at its destination."""
        place = destination * self.ends.shape[1] + switch
        flat = self.ends.reshape(-1)
        first = int(flat[place - 1]) if place else 0
        return [int(channel) for channel in self.channels[first : int(flat[place])]]

    def hops_at(self, switch: int, destination: int) -> list[tuple[int, int]]:
        """Return the channel and the priority of each next hop, with ``priorities``."""
        assert self.priorities is not None  # noqa: S101 - of adaptive plans
        first = int(self.firsts[destination, switch])
        priorities = self.priorities[first : first + int(self.sizes[destination, switch])]
        return list(zip(self.choices(switch, destination), priorities.tolist(), strict=True))

    def on_priority(self, priority: int) -> NextHopSets:
        """Return the same sets with the next hops on one priority alone, as sets of any one."""
        assert self.priorities is not None  # noqa: S101 - of adaptive plans
        taken = self.priorities == priority
        before = np.concatenate([[0], np.cumsum(taken)])
        return NextHopSets(before[self.ends].astype(np.uint32), self.channels[taken])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of channels in each set, shape (destination switches, switches)."""
        flat = np.diff(self.ends.reshape(-1).astype(np.int64), prepend=0)
        return flat.reshape(self.ends.shape)

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """The place in ``channels`` at which each set begins, same shape."""
        return self.ends.astype(np.int64) - self.sizes


def on_shortest_paths(task: Task) -> tuple[Mask, Ints]:
    """Return which channels are on a shortest path to each switch, and the numbers of hops.

    Shapes are (destination switches, channels) and (destination switches, switches). Raises
    PlanError if memory is short.
    """
    channels = task.channels
    _refuse_too_large(task)
    hops = plain_graph(channels).hops()
    return hops[:, channels.head] + 1 == hops[:, channels.tail], hops


def shortest_next_hops(task: Task) -> NextHopSets:
    """Return the channels of all shortest paths; nothing prevents a cycle of them."""
    return _sets(task, *on_shortest_paths(task), "shortest paths")


def up_down_next_hops(
    task: Task, rises: Mask, falls: Mask, order: Ints, engine: str
) -> NextHopSets:
    """Return the sets of :func:`up_down_channels`; ``engine`` is its name, for errors.

    Raises
    ------
    PlanError
        There is no such path between two switches with hosts, or memory is short.

    """
    return _sets(task, *up_down_channels(task, rises, falls, order), engine)


def up_down_channels(task: Task, rises: Mask, falls: Mask, order: Ints) -> tuple[Mask, Ints]:
    """Return the channels of shortest paths up, as far as needed, and then down.

    Parameters
    ----------
    task : Task
        The fabric.
    rises, falls : arrays of bool, shape (channels,)
        Which channels lead up and down. Other channels are not used.
    order : array of int32, shape (switches,)
        All switches, each after those to which its channels up lead.

    Returns
    -------
    channels : array of bool, shape (destination switches, channels)
        Those that lead to each switch.
    hops : array of int32, shape (destination switches, switches)
        The lengths of these paths.

    Raises
    ------
    PlanError
        Memory is short.

    """
    channels = task.channels
    _refuse_too_large(task)
    tail, head = channels.tail, channels.head
    switches = np.arange(len(channels.names), dtype=np.int32)
    every = np.arange(len(channels), dtype=np.int32)
    down = graph_of(channels, switches, switches, [(tail[falls], head[falls], every[falls])]).hops()
    hops = down.copy()
    up_from = [every[rises & (tail == switch)] for switch in switches]
    for switch in order.tolist():
        if len(up_from[switch]):
            above = hops[:, head[up_from[switch]]].min(axis=1) + 1
            hops[:, switch] = np.where(down[:, switch] < FAR, down[:, switch], above)
    can_fall = down[:, tail] < FAR
    closer = (hops[:, head] + 1 == hops[:, tail]) & (can_fall | rises)
    closer &= np.where(can_fall, falls & (down[:, head] + 1 == down[:, tail]), True)
    return closer, hops


def _refuse_too_large(task: Task) -> None:
    cells = len(task.channels.names) * (len(task.channels.names) + len(task.channels))
    needed = Cost.NEXT_HOPS.bytes_for(cells)
    refuse_beyond(f"{task.fabric.name}: all next hops", needed, PlanError)


def _sets(task: Task, closer: Mask, hops: Ints, engine: str) -> NextHopSets:
    """Return the sets of the channels that are ``closer`` to each destination with hosts."""
    receives = task.receivers > 0
    apart = hops[np.ix_(receives, receives)] >= FAR
    if apart.any():
        to, source = np.argwhere(apart)[0]
        names = np.array(task.channels.names)[receives]
        raise PlanError(
            f"{engine} has no next hops from {names[source]} to {names[to]} on"
            f" {task.fabric.name}; updown runs on any fabric"
        )
    tail = task.channels.tail
    destination, channel = np.nonzero(closer & receives[:, None] & (hops[:, tail] < FAR))
    count = len(task.channels.names)
    cells = destination * count + tail[channel]
    sizes = np.bincount(cells, minlength=count * count)
    ends = np.cumsum(sizes).astype(np.uint32).reshape(count, count)
    return NextHopSets(ends, channel.astype(np.int32))
