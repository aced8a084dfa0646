"""The virtual lanes of messages on the links of channel adapters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.base.printable import listed
from knotless.importers.host_links import HostLinks, HostTraffic
from knotless.importers.infiniband.sl2vl import DROP_VL, SLS, SlTables
from knotless.importers.infiniband.subnet import Subnet
from knotless.importers.next_hops import NOT_SENT, NextHops, VcMap

UNKNOWN_SLS = "the SLs of paths (saquery -p): SLs use different VLs"
_ANY = frozenset(range(DROP_VL))
"""The lanes of packets whose lane is not known."""


@dataclass(frozen=True)
class AdapterLanes:
    """The lanes of an adapter's link, as ``tables`` of its switch and of itself (0, 0) say.

    ``sls`` are those of paths by host and destination, None: none are known; ``whole`` is whether
    all are. Without tables, all packets use lane 0.
    """

    subnet: Subnet
    hops: NextHops
    vcs: VcMap
    tables: SlTables
    sls: NDArray[np.uint16] | None
    whole: bool
    between: NDArray[np.bool_]
    without: set[str] = field(default_factory=set)
    """The adapters and switches whose tables were needed, and are not known."""

    @property
    def links(self) -> HostLinks:
        """The links of adapters. Messages of priority P have SL P, unless paths have SLs."""
        sls = self.sls if self.whole else None
        by_path = sls is not None

        def doubts(priorities: Collection[int]) -> Iterator[str]:
            if not by_path and self.sls is not None:
                yield "the SLs of all paths (saquery -p)"
            if not self.tables and not by_path and len(priorities) > 1:
                yield "the SL to VL tables: different SLs may use different VLs"
            if self.without:
                yield f"the SL to VL tables of {listed(sorted(self.without), 3)}"

        return HostLinks(
            traffics=[*self._traffics()],
            turns=self._turns if sls is None else partial(self._turns_of_path, sls),
            priorities=(0,) if by_path or not self.tables else range(SLS),
            together="messages have the SLs of their paths" if by_path else "",
            called="SL",
            hosts=int(np.count_nonzero(~self.subnet.aggregating)),
            doubts=doubts,
            about_priorities=UNKNOWN_SLS,
        )

    def _traffics(self) -> Iterator[HostTraffic]:
        """Yield the packets of each SL, first those of paths whose SL is known."""
        count, hosts = len(self.subnet.lids), len(self.subnet.fabric.hosts)
        path_sls = np.full(self.between.shape, NOT_SENT, dtype=np.uint16)
        if self.sls is not None:
            path_sls[:hosts] = np.where(self.between[:hosts], self.sls[:, :count], NOT_SENT)
            for sl in np.unique(path_sls[path_sls != NOT_SENT]).tolist():
                state = self._state(self.vcs, np.where(path_sls == sl, path_sls, NOT_SENT))
                yield self._of_sl(state, sl)
        others = np.where(self.between & (path_sls == NOT_SENT), 0, NOT_SENT).astype(np.uint16)
        if not (others == 0).any():
            return
        _, kinds = np.unique(self.vcs.rows, axis=1, return_inverse=True)
        for kind in np.unique(kinds):
            sls = np.flatnonzero(kinds == kind).tolist()
            state = self._state(self.vcs.with_labels(sls[:1]), others)
            yield from (self._of_sl(state, sl, (sl,)) for sl in sls)

    def _state(self, vcs: VcMap, sent: NDArray[np.uint16]) -> core.State:
        unassigned = len(self.hops.classes) - sent.shape[1]
        return self.hops.state(
            vcs, np.pad(sent, ((0, 0), (0, unassigned)), constant_values=NOT_SENT)
        )

    def _of_sl(self, state: core.State, sl: int, priorities: Sequence[int] = ()) -> HostTraffic:
        return HostTraffic(
            state,
            lambda end: self._sent(end, sl),
            lambda end, channel, _: self._received(end, channel, sl),
            priorities if self.tables else (),
        )

    def _sent(self, end: int, sl: int) -> frozenset[int]:
        """Return the lanes on which an adapter sends packets with an SL."""
        host = int(self.subnet.owner[end])
        if not self.tables:
            return frozenset([0])
        guids = self.subnet.host_guids[host]
        row = next((self.tables[g, 0, 0] for g in guids if (g, 0, 0) in self.tables), None)
        if not row:
            self.without.add(self.subnet.fabric.hosts[host].name)
            return _ANY
        return frozenset([row[sl]]) - {DROP_VL}

    def _received(self, end: int, channel: int, sl: int) -> frozenset[int]:
        """Return the lanes on which an adapter receives packets that come by a channel."""
        channels = self.subnet.channels
        entered = channel - len(channels)
        in_port = self.hops.ends[entered][1] if entered >= 0 else int(channels.in_port[channel])
        return self._lanes(end, in_port, sl)

    def _lanes(self, end: int, in_port: int, sl: int) -> frozenset[int]:
        switch, port = self.hops.ends[end]
        if not self.tables:
            return frozenset([0])
        row = self.tables.get((self.subnet.guids[switch], in_port, port))
        if row is None:
            self.without.add(self.subnet.fabric.switches[switch].name)
            return _ANY
        return frozenset([row[sl]]) - {DROP_VL}

    @cached_property
    def _in_ports(self) -> list[list[int]]:
        """By switch the ports that packets enter by."""
        ports: list[list[int]] = [[] for _ in self.subnet.guids]
        for switch, port in {*self.subnet.channels.entering, *self.hops.ends}:
            ports[switch].append(port)
        return ports

    def _turns(self, end: int, taken: int, sent: int) -> set[tuple[int, int]]:
        switch, out = self.hops.ends[end]
        others = (port for port in self._in_ports[switch] if port != out)
        received = {vl for port in others for vl in self._lanes(end, port, taken)}
        return {(before, after) for before in received for after in self._sent(end, sent)}

    def _turns_of_path(
        self, sls: NDArray[np.uint16], end: int, _taken: int, _sent: int
    ) -> set[tuple[int, int]]:
        """Return the lanes of messages and of those sent for them, each with the SL of its path."""
        host, hosts = int(self.subnet.owner[end]), len(self.subnet.fabric.hosts)
        pairs = np.stack([sls[:, end], sls[host, :hosts]], axis=1)
        is_sent = (pairs != NOT_SENT).all(axis=1)
        return {
            turn
            for taken, sent in np.unique(pairs[is_sent], axis=0).tolist()
            for turn in self._turns(end, taken, sent)
        }
