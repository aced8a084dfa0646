"""The input of a routing engine: the fabric as arrays, and the user's options."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from knotless.base.model_limits import PRIORITIES
from knotless.routing.graphs.channels import Channels, Ints
from knotless.topologies.fabric import Fabric

Selection = Literal["spread", "low-port"]
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
MAX_VCS = PRIORITIES


@dataclass(frozen=True)
class Task:
    """The input of an engine.

    Attributes
    ----------
    fabric : Fabric
        The fabric.
    channels : Channels
        Its numbered channels.
    vcs : int or None
        The number of virtual channels allowed; None: no limit.
    select : str
        The choice among equal paths, one of :data:`SELECTIONS`.
    root : int or None
        The index of the root switch; None: the user gave none.
    layer : int
        The number of a layer, for engines whose other layers have other paths
        (:mod:`knotless.routing.choices.layers`).

    """

    fabric: Fabric
    channels: Channels
    vcs: int | None
    select: str
    root: int | None
    layer: int = 0

    @property
    def tree_root(self) -> int:
        """The root switch for engines that need one: the first by default."""
        return self.root or 0

    @cached_property
    def host_switches(self) -> Ints:
        """The switch index of each host, in the order of the hosts."""
        index = self.fabric.switch_index
        return np.array([index[host.switch] for host in self.fabric.hosts], dtype=np.int32)

    @cached_property
    def host_ranks(self) -> Ints:
        """The rank of each host among the hosts of its switch, from 0, by port."""
        switches = self.host_switches
        ports = np.array([host.port for host in self.fabric.hosts])
        order = np.lexsort((ports, switches))
        first = np.searchsorted(switches[order], switches)
        place = np.zeros(len(switches), dtype=np.int32)
        place[order] = np.arange(len(switches), dtype=np.int32)
        return (place - first).astype(np.int32)

    @cached_property
    def ranks(self) -> int:
        """The largest number of hosts on a switch."""
        return int(self.receivers.max())

    @cached_property
    def receivers(self) -> Ints:
        """The number of hosts on each switch."""
        counts = np.bincount(self.host_switches, minlength=len(self.channels.names))
        return counts.astype(np.int32)

    @cached_property
    def columns(self) -> Ints:
        """The column of each switch in next-hop tables; -1 for those without hosts."""
        receives = self.receivers > 0
        return np.where(receives, np.cumsum(receives) - 1, -1).astype(np.int32)
