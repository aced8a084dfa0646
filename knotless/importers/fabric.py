"""A fabric that was read from files: its forwarding states, and what is not known about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import ProofError
from knotless.base.flow_control import FlowControl
from knotless.base.model_limits import PRIORITIES
from knotless.forwarding.openflow.rules import FabricRules, Rule
from knotless.forwarding.state import ForwardingState, Hop
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.causes import Cause
from knotless.importers.findings import Findings
from knotless.importers.host_links import HostLinks, one_buffer
from knotless.importers.next_hops import NextHops, VcMap
from knotless.importers.not_read import NotRead
from knotless.importers.route_tables import RouteTables
from knotless.importers.subnet_tables import SubnetTables
from knotless.routing.graphs.channels import Channels
from knotless.routing.graphs.dependencies import (
    Edges,
    lossless_waits,
    merged,
    requested,
    virtual_channel,
)
from knotless.topologies.fabric import Fabric

if TYPE_CHECKING:
    from knotless.importers.switch_settings import ReadSettings  # loads pydantic

SentAs = Callable[[int, int], int]
"""Returns the label, such as the SL, with which a source (its index) sends to a destination."""


Config = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Tables of a SONiC database: fields by table and key."""

PortsGone = Mapping[tuple[int, int], AbstractSet[str]]
"""By switch and destination (numbers) the names of ports that are no longer used."""
RoutesWithout = Callable[[PortsGone], dict[str, str] | None]


def _no_files(_: PortsGone) -> None:
    return None


def _no_number(_: str) -> None:
    return None


def _ends_nowhere(_destination: int, _switch: int) -> bool:
    return False


def _no_causes(_switch: int, _port: int | None, _destination: int) -> Sequence[Cause]:
    return ()


def _no_sections() -> dict[str, bytes]:
    return {}


def _no_route_tables() -> RouteTables:
    raise ProofError("proofs do not cover tables that are not those of IP routers")


def no_groups(_traffic: int, _source: int) -> frozenset[int]:
    """Return no priority groups: they are not known."""
    return frozenset()


def _no_settings() -> dict[str, ReadSettings]:
    return {}


@dataclass(frozen=True)
class Traffic:
    """Packets that can be sent at the same time: their state, and the first label of each.

    If the same pairs are sent in several ways, the undelivered pairs of one of these count.
    """

    state: ForwardingState
    sent_as: SentAs
    counted: bool = field(default=True, kw_only=True)

    def shown(self, hop: Hop) -> Hop:
        """Return a step of a packet with the label and the priority that people know."""
        return hop


@dataclass(frozen=True)
class TableTraffic(Traffic):
    """Traffic whose state is that of next-hop tables, see :meth:`NextHops.state`.

    ``marks`` are what labels stand for, such as the DSCP; empty: labels are shown as they are.
    """

    vcs: VcMap
    first_labels: NDArray[np.uint16] | None
    marks: Sequence[int] = ()

    def shown(self, hop: Hop) -> Hop:
        """Return a step with its mark and the priority group, as in the names of channels."""
        if not self.marks:
            return hop
        mark = self.marks[hop.label % len(self.marks)]
        return Hop(hop.channel, mark, hop.priority % PRIORITIES)

    def with_tables(self, hops: NextHops, vcs: VcMap) -> TableTraffic:
        """Return the same packets with other next hops and virtual channels."""
        state = replace(self.state, core=hops.state(vcs, self.first_labels))
        return replace(self, state=state, vcs=vcs)


@dataclass(frozen=True, kw_only=True)
class ImportedFabric:
    """A fabric that was read from files, such as OpenFlow rules.

    ``traffics`` are sent at the same time, between ``pairs`` of a host and a destination;
    ``label`` is what their labels are called (``SL``). ``management`` is what hosts do not send
    to each other, by its name; the verdict says only whether it would add a cycle. ``not_read`` are
    files in folders and archives that were not read. ``unread`` are ports, by the names of router
    and port, whose far end has no files; they send as hosts do. ``number_of`` returns the
    destination of an address, ``ends_at`` whether a destination is an address of a switch itself.
    ``causes_at`` returns the sources of what a switch does with packets for a destination that
    enter by a port, given by their numbers (None: any port).
    ``explain`` returns what a port of a router (``r1:Ethernet0``) leads to, and what says so; it
    raises RuleError if there is no such router. ``assumed_routes``: they are computed from
    configurations. ``host_links`` returns what is known of the links of hosts.
    """

    fabric: Fabric
    channels: Channels
    flow_control: FlowControl
    traffics: tuple[Traffic, ...]
    pairs: int
    label: str
    findings: Findings = field(default_factory=Findings)
    not_read: tuple[NotRead, ...] = ()
    management: Mapping[str, tuple[Traffic, ...]] = field(default_factory=dict)
    unread: tuple[NamedEnd, ...] = ()
    number_of: Callable[[str], int | None] = _no_number
    ends_at: Callable[[int, int], bool] = _ends_nowhere
    causes_at: Callable[[int, int | None, int], Sequence[Cause]] = _no_causes
    explain: Callable[[str], str] | None = None
    assumed_routes: bool = False
    host_links: Callable[[], HostLinks] | None = None

    def links_of_hosts(self) -> HostLinks:
        """Return where messages wait on the links of hosts; without more, in one buffer of each."""
        if self.host_links is not None:
            return self.host_links()
        return one_buffer(traffic.state.core for traffic in self.traffics)

    def destination_called(self, text: str) -> str:
        """Return the name of the destination that an address belongs to; other text as it is."""
        number = self.number_of(text)
        return text if number is None else self.traffics[0].state.destination_name(number)

    def waits(self, dependencies: Edges) -> tuple[NDArray[np.int64], Edges]:
        """Return which dependencies of packets are those of lossless virtual channels.

        Returns the rows of ``dependencies`` (held channel and virtual channel, wanted ones, ...)
        that matter, and (rows, 4) the nodes of each.
        """
        return np.arange(len(dependencies)), dependencies[:, :4].copy()

    def nodes_held(self, channel: int, vc: int) -> list[int]:
        """Return the node that packets on a virtual channel hold; nothing if it is lossy."""
        return [virtual_channel(channel, vc)]

    def nodes_requested(self, channel: int, vc: int) -> list[int]:
        """Return the nodes that packets wait for that want a virtual channel."""
        return self.nodes_held(channel, vc)


@dataclass(frozen=True, kw_only=True)
class RulesFabric(ImportedFabric):
    """A fabric of OpenFlow switches with their rules, by name; those of some may be missing.

    ``unread_rules`` are rules that cannot be read: each matches at least what it does, and has no
    actions. ``unread_text`` are the findings on these, and on rules that cannot be followed.
    """

    flow_control: FlowControl
    rules: FabricRules
    unread_rules: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    unread_text: frozenset[str] = frozenset()

    def waits(self, dependencies: Edges) -> tuple[NDArray[np.int64], Edges]:
        """Return the nodes of dependencies as :meth:`ImportedFabric.waits`."""
        rows, nodes = super().waits(dependencies)
        nodes[:, [1, 3]] = merged(nodes[:, [1, 3]], self.flow_control.switch_links)
        return rows, nodes

    def nodes_held(self, channel: int, vc: int) -> list[int]:
        """Return the nodes of packets as :meth:`ImportedFabric.nodes_held`."""
        node = np.array([virtual_channel(channel, vc)], dtype=np.int64)
        return [int(merged(node, self.flow_control.switch_links)[0])]


@dataclass(frozen=True, kw_only=True)
class TableFabric(ImportedFabric):
    """A fabric of next-hop tables: of routers, or of InfiniBand switches.

    ``pausing`` (channels, 8, 16) are the priorities of each channel that a PFC frame for a
    priority group stops; None: every virtual channel waits alone. ``routes_without`` returns files
    that make switches stop using ports, which are given by (switch, destination); None if that
    cannot be written. ``switch_settings`` returns the settings of the switches, by name.
    ``resident_routes`` returns routes that can change, None: that is not possible.
    ``sections`` returns what a state needs to read one of them again; nothing if none is enough.
    ``first_groups`` returns the priority groups of the port of a source that packets of a traffic
    may be in, by numbers; none if that is not known. ``route_tables`` returns what the routers do
    with IPv4 addresses, ``subnet_tables`` what InfiniBand switches do with LIDs; both raise
    ProofError if they do more than this says, or if it is not known.
    """

    traffics: tuple[TableTraffic, ...]
    hops: NextHops
    pausing: NDArray[np.bool_] | None = None
    configs: tuple[Config, ...] = ()
    routes_without: RoutesWithout = _no_files
    switch_settings: Callable[[], Mapping[str, ReadSettings]] = _no_settings
    resident_routes: Callable[[], object] | None = None
    sections: Callable[[], dict[str, bytes]] = _no_sections
    first_groups: Callable[[int, int], frozenset[int]] = no_groups
    route_tables: Callable[[], RouteTables] = _no_route_tables
    subnet_tables: Callable[[], SubnetTables] | None = None

    def with_tables(
        self,
        hops: NextHops,
        vcs: Sequence[VcMap] | None = None,
        pausing: NDArray[np.bool_] | None = None,
    ) -> TableFabric:
        """Return the fabric with other next hops, virtual channels of its traffics, or pauses."""
        maps = vcs or [traffic.vcs for traffic in self.traffics]
        return replace(
            self,
            hops=hops,
            pausing=self.pausing if pausing is None else pausing,
            traffics=tuple(
                traffic.with_tables(hops, vc_map)
                for traffic, vc_map in zip(self.traffics, maps, strict=True)
            ),
        )

    def with_pauses(self, pausing: NDArray[np.bool_]) -> TableFabric:
        """Return the fabric with other pauses; packets take the same paths."""
        return replace(self, pausing=pausing)

    def waits(self, dependencies: Edges) -> tuple[NDArray[np.int64], Edges]:
        """Return the nodes of dependencies as :meth:`ImportedFabric.waits`.

        The virtual channel of a packet under PFC is its queue times 8 plus its priority group; the
        priority group is the node.
        """
        if self.pausing is None:
            return super().waits(dependencies)
        return lossless_waits(self.pausing, dependencies)

    def nodes_held(self, channel: int, vc: int) -> list[int]:
        """Return the nodes of packets as :meth:`ImportedFabric.nodes_held`."""
        if self.pausing is None:
            return super().nodes_held(channel, vc)
        group = vc % PRIORITIES
        return [virtual_channel(channel, group)] if self.pausing[channel, group].any() else []

    def nodes_requested(self, channel: int, vc: int) -> list[int]:
        """Return the nodes of packets as :meth:`ImportedFabric.nodes_requested`."""
        if self.pausing is None:
            return super().nodes_requested(channel, vc)
        groups = np.flatnonzero(self.pausing[channel, :, vc // PRIORITIES]).tolist()
        return [virtual_channel(channel, group) for group in groups]

    def requested(
        self, dependencies: Edges
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of dependencies that wait, and the channel and priority group of each.

        What they hold may be lossy.
        """
        if self.pausing is None:
            requests, vc = dependencies[:, 2:4].T
            return np.arange(len(dependencies)), requests, vc
        return requested(self.pausing, dependencies)


AnyFabric = RulesFabric | TableFabric
"""The fabrics that are read from files."""
