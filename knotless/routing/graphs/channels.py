"""The channels of a fabric: a channel is one direction of a link between switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from knotless._core import graph as core
from knotless.topologies.fabric import Fabric

End = tuple[int, int]
"""A switch (its index) and a port."""
Ints = NDArray[np.int32]
Priorities = NDArray[np.uint8]

VCS_PER_CHANNEL = 16
"""The numbers kept for the virtual channels of a channel: 802.1Q has 8 priorities, each of which
carries a virtual channel; InfiniBand has 16 virtual lanes."""


@dataclass(frozen=True)
class Channels:
    """All channels between switches, sorted by (switch, port).

    Attributes
    ----------
    names : tuple of str
        The names of the switches.
    tail, head : array of int32, shape (channels,)
        The index of the switch that each channel leaves, and of that it enters.
    out_port, in_port : array of int32, shape (channels,)
        The ports there.
    port_names : mapping of (int, int) to str
        The names of (switch, port) in fabrics where ports have names.

    """

    names: tuple[str, ...]
    tail: Ints
    head: Ints
    out_port: Ints
    in_port: Ints
    port_names: Mapping[End, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of channels."""
        return len(self.tail)

    @cached_property
    def leaving(self) -> Mapping[End, int]:
        """Map (switch index, port) to the channel that leaves there."""
        ends = zip(self.tail.tolist(), self.out_port.tolist(), strict=True)
        return {end: c for c, end in enumerate(ends)}

    @cached_property
    def entering(self) -> Mapping[End, int]:
        """Map (switch index, port) to the channel that enters there."""
        ends = zip(self.head.tolist(), self.in_port.tolist(), strict=True)
        return {end: c for c, end in enumerate(ends)}

    @cached_property
    def reverse(self) -> Ints:
        """Return, for each channel, the channel in the opposite direction of its link."""
        leaves = self.tail.astype(np.int64) << 32 | self.out_port
        enters = self.head.astype(np.int64) << 32 | self.in_port
        return np.searchsorted(leaves, enters).astype(np.int32)

    @cached_property
    def core(self) -> core.Channels:
        """The channels in the form of the Rust core."""
        return core.Channels(self.tail, self.head, self.reverse, len(self.names))

    def name(self, channel: int, priority: int) -> str:
        """Return ``SWITCH:PORT/PRIORITY``, where PORT is the output port."""
        switch = int(self.tail[channel])
        return (
            f"{self.names[switch]}:{self.port_name(switch, int(self.out_port[channel]))}/{priority}"
        )

    def end_of(self, name: str) -> tuple[str, int]:
        """Return the switch and the port that the channel called ``SWITCH:PORT/PRIORITY`` leaves.

        Raises StopIteration if there is none.
        """
        switch, _, rest = name.partition(":")
        port = rest.rpartition("/")[0]
        number = self.names.index(switch)
        return switch, next(
            p for s, p in self.leaving if s == number and self.port_name(s, p) == port
        )

    def port_name(self, switch: int, port: int) -> str:
        """Return the name of a port of a switch (its index); by default its number."""
        return self.port_names.get((switch, port), str(port))


def channels_of(fabric: Fabric) -> Channels:
    """Number the channels of a fabric.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> channels = channels_of(load("ring,4"))
    >>> len(channels), channels.tail.tolist(), channels.head.tolist()
    (8, [0, 0, 1, 1, 2, 2, 3, 3], [1, 3, 2, 0, 3, 1, 0, 2])
    >>> channels.name(0, 5)
    's1:2/5'

    """
    index = fabric.switch_index
    rows = [
        (i, index[neighbour], port, neighbour_port)
        for i, switch in enumerate(fabric.switches)
        for port, (neighbour, neighbour_port) in fabric.neighbours[switch.name].items()
    ]
    columns = np.ascontiguousarray(np.array(rows, dtype=np.int32).reshape(-1, 4).T)
    names = tuple(switch.name for switch in fabric.switches)
    return Channels(names, columns[0], columns[1], columns[2], columns[3])
