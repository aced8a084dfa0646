"""The channels of a fabric, numbered: one direction of a link between switches is one channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from knotless_core import graph as core
from topologies.fabric import Fabric

Ints = NDArray[np.int32]
Priorities = NDArray[np.uint8]

PRIORITIES = 8
"""802.1Q has eight; a priority carries a virtual channel."""


@dataclass(frozen=True)
class Channels:
    """Every channel between switches, ordered by (switch in the fabric's order, port).

    All arrays have one entry a channel. ``tail`` and ``head`` are the indices of the switches
    that it leaves and enters, ``out_port`` and ``in_port`` the ports there.
    """

    names: tuple[str, ...]
    tail: Ints
    head: Ints
    out_port: Ints
    in_port: Ints

    def __len__(self) -> int:
        """Return the number of channels."""
        return len(self.tail)

    @cached_property
    def leaving(self) -> Mapping[tuple[int, int], int]:
        """(switch index, port) -> the channel that leaves there."""
        ends = zip(self.tail.tolist(), self.out_port.tolist(), strict=True)
        return {end: c for c, end in enumerate(ends)}

    @cached_property
    def entering(self) -> Mapping[tuple[int, int], int]:
        """(switch index, port) -> the channel that enters there."""
        ends = zip(self.head.tolist(), self.in_port.tolist(), strict=True)
        return {end: c for c, end in enumerate(ends)}

    @cached_property
    def reverse(self) -> Ints:
        """Return, for each channel, the channel in the other direction of its link."""
        leaves = self.tail.astype(np.int64) << 32 | self.out_port
        enters = self.head.astype(np.int64) << 32 | self.in_port
        return np.searchsorted(leaves, enters).astype(np.int32)

    @cached_property
    def core(self) -> core.Channels:
        """The same for the kernels of the Rust core, indexed once."""
        return core.Channels(self.tail, self.head, self.reverse, len(self.names))

    def name(self, channel: int, priority: int) -> str:
        """Return ``SWITCH:PORT/PRIORITY``, the port being the one that it leaves by."""
        return f"{self.names[self.tail[channel]]}:{self.out_port[channel]}/{priority}"


def channels_of(fabric: Fabric) -> Channels:
    """Number the channels of ``fabric``."""
    index = fabric.switch_index
    rows = [
        (i, index[far], port, far_port)
        for i, switch in enumerate(fabric.switches)
        for port, (far, far_port) in fabric.neighbours[switch.name].items()
    ]
    columns = np.ascontiguousarray(np.array(rows, dtype=np.int32).reshape(-1, 4).T)
    names = tuple(switch.name for switch in fabric.switches)
    return Channels(names, columns[0], columns[1], columns[2], columns[3])
