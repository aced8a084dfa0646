"""A fabric that was read from files: its forwarding states, and what is not known about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from forwarding.imported.findings import Findings
from forwarding.imported.next_hops import NextHops, VcMap
from forwarding.state import ForwardingState
from routing.flow_control import Edges
from routing.graphs.channels import PRIORITIES, Channels
from topologies.fabric import Fabric

SentAs = Callable[[int, int], int]
"""Returns the label, such as the SL, with which a source (its index) sends to a destination."""


Config = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Tables of a SONiC database: fields by table and key."""


@dataclass(frozen=True)
class Traffic:
    """What can be sent at the same time: its state, and the label of each packet at its start.

    If the same pairs are sent in several ways, the undelivered pairs of one of these count. The
    state is that of the fabric's next hops with ``vcs`` and ``first_labels``, see
    :meth:`NextHops.state`.
    """

    state: ForwardingState
    sent_as: SentAs
    vcs: VcMap
    first_labels: NDArray[np.uint16] | None
    counted: bool = True

    def with_tables(self, hops: NextHops, vcs: VcMap) -> Traffic:
        """Return the same packets with other next hops and virtual channels."""
        state = replace(self.state, core=hops.state(vcs, self.first_labels))
        return replace(self, state=state, vcs=vcs)


@dataclass(frozen=True)
class ImportedFabric:
    """A fabric that was read from files.

    ``traffics`` are sent at the same time, between ``pairs`` of a host and a destination;
    ``label`` is what their labels are called (``SL``). ``waits`` turns the dependencies of packets
    into those of lossless virtual channels. ``ignored`` are files that no reader recognised.
    """

    fabric: Fabric
    channels: Channels
    flow_control: str
    traffics: tuple[Traffic, ...]
    pairs: int
    label: str
    hops: NextHops
    findings: Findings = field(default_factory=Findings)
    ignored: tuple[str, ...] = ()
    pausing: NDArray[np.bool_] | None = None
    configs: tuple[Config, ...] = ()

    def with_tables(
        self,
        hops: NextHops,
        vcs: Sequence[VcMap] | None = None,
        pausing: NDArray[np.bool_] | None = None,
    ) -> ImportedFabric:
        """Return the fabric with other next hops, virtual channels of its traffics, or pauses."""
        maps = vcs or [traffic.vcs for traffic in self.traffics]
        return replace(
            self,
            hops=hops,
            pausing=self.pausing if pausing is None else pausing,
            traffics=tuple(
                traffic.with_tables(hops, of)
                for traffic, of in zip(self.traffics, maps, strict=True)
            ),
        )

    def with_pauses(self, pausing: NDArray[np.bool_]) -> ImportedFabric:
        """Return the fabric with other pauses; packets take the same ways."""
        return replace(self, pausing=pausing)

    def waits(self, dependencies: Edges) -> tuple[NDArray[np.int64], Edges]:
        """Return which dependencies of packets are those of lossless virtual channels.

        Returns the rows of ``dependencies`` (held channel and virtual channel, wanted ones, ...)
        that matter, and (rows, 4) the nodes of each. The virtual channel of a packet under PFC is
        its queue times 8 plus its priority group; the priority group is the node.
        """
        if self.pausing is None:
            return np.arange(len(dependencies)), dependencies[:, :4]
        held, held_vc, wanted, wanted_vc = dependencies[:, :4].T
        group = held_vc % PRIORITIES
        lossless = np.any(self.pausing[held, group], axis=1)
        stopping = self.pausing[wanted, :, wanted_vc // PRIORITIES] & lossless[:, None]
        rows, wanted_group = np.nonzero(stopping)
        return rows, np.stack([held[rows], group[rows], wanted[rows], wanted_group], axis=1)
