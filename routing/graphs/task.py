"""What a routing engine is given: the fabric as arrays, and what the user asks for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from routing.graphs.channels import Channels, Ints
from topologies.fabric import Fabric

Selection = Literal["spread", "low-port"]
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
MAX_VCS = 8


@dataclass(frozen=True)
class Task:
    """What an engine is to route.

    ``vcs`` is how many virtual channels it may use (None: as many as it likes), ``select``
    one of :data:`SELECTIONS`, ``root`` the index of the root switch where one was told.
    """

    fabric: Fabric
    channels: Channels
    vcs: int | None
    select: str
    root: int | None

    @property
    def tree_root(self) -> int:
        """The root switch of engines that need one: the first unless told."""
        return self.root or 0

    @cached_property
    def host_switches(self) -> Ints:
        """The switch index of each host, in the order of the hosts."""
        index = self.fabric.switch_index
        return np.array([index[host.switch] for host in self.fabric.hosts], dtype=np.int32)

    @cached_property
    def host_ranks(self) -> Ints:
        """Each host's place (from 0) among the hosts of its switch, by port."""
        at = self.host_switches
        ports = np.array([host.port for host in self.fabric.hosts])
        order = np.lexsort((ports, at))
        first = np.searchsorted(at[order], at)
        place = np.zeros(len(at), dtype=np.int32)
        place[order] = np.arange(len(at), dtype=np.int32)
        return (place - first).astype(np.int32)

    @cached_property
    def ranks(self) -> int:
        """The most hosts that a switch has."""
        return int(self.receivers.max())

    @cached_property
    def receivers(self) -> Ints:
        """How many hosts each switch has."""
        counts = np.bincount(self.host_switches, minlength=len(self.channels.names))
        return counts.astype(np.int32)
