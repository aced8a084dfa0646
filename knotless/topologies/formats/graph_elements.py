"""Fabrics of graphs that other programs wrote: nodes and edges with data, in whatever format.

Nodes are switches, unless their data ``kind`` is ``host`` (or, without any ``kind``, their
``type``); edges are links. These data are read, and notes name all others:

- node: ``label``;
- switch: ``dpid``, and ``hosts``, its number of hosts;
- host (which must have exactly one edge): ``mac``, ``ip``;
- edge: ``source_port``, ``target_port``, ``rate_mbps``, ``delay_us``.

If there are no host nodes and no ``hosts`` data, each switch gets one host. Names are the labels if
most of them are distinct, else the ids of nodes, each changed as far as it must be
(:func:`knotless.topologies.formats.node_names.valid_names`); those that cannot be names at all are
s1, s2.. and h1, h2.. in file order.

A node without edges is no part of the fabric that the others form, such as the collector of a
picture, unless its data say that it is a host or has hosts: they would be unreachable.

A directed edge is a link as well, because yEd draws all edges as directed ones. Where each directed
edge has an opposite one, as when NetworkX writes a directed graph, both are one link.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from knotless.base.errors import FabricError
from knotless.base.printable import listed
from knotless.topologies.fabric import DEFAULT_DELAY_US, DEFAULT_RATE_MBPS, Fabric
from knotless.topologies.formats.node_names import valid_names
from knotless.topologies.numbering import MAX_HOSTS, MAX_HOSTS_PER_SWITCH
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

READ = {
    "node": ("label", "kind", "type", "dpid", "hosts", "mac", "ip"),
    "edge": ("source_port", "target_port", "rate_mbps", "delay_us"),
}
"""The data that are read."""
_WHOLE = re.compile(r"[0-9]{1,20}")
_OTHER_END = {"source_port": "target_port", "target_port": "source_port"}
_NAMED = 30


@dataclass
class Element:
    """A node (``ends`` empty) or an edge, with its data by attribute name.

    ``where`` is its place in the file.
    """

    name: str
    where: str
    ends: tuple[str, ...] = ()
    directed: bool = False
    label: str = ""
    data: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """``node`` or ``edge``."""
        return "edge" if self.ends else "node"

    def error(self, what: str) -> FabricError:
        """Return an error that names the element and its place."""
        shown = self.name if len(self.name) <= 60 else self.name[:57] + "..."
        return FabricError(f"{self.where}: {self.kind} {shown!r}: {what}")

    def whole(self, key: str) -> int | None:
        """Return a whole number of the data, None if it is not given; raises FabricError."""
        text = self.data.get(key)
        if text is None:
            return None
        if not _WHOLE.fullmatch(text):
            raise self.error(f"{key} must be a whole number, not {text[:40]!r}")
        return int(text)

    def number(self, key: str, default: float) -> float:
        """Return a finite number of the data; raises FabricError."""
        text = self.data.get(key)
        try:
            value = default if text is None else float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f"{key} must be a number, not {str(text)[:40]!r}")
        return value


def fabric_of_graph(
    name: str, nodes: Mapping[str, Element], edges: Sequence[Element], ignored: Iterable[str] = ()
) -> Fabric:
    """Return the fabric called ``name`` of a graph, validated.

    ``nodes`` are by id. ``ignored`` are notes on what was not read.

    Raises
    ------
    FabricError
        The graph has no switch, or its fabric is inconsistent; the message names the place if
        there is one.

    """
    notes = list[str]()
    nodes = _linked(nodes, edges, notes)
    types = {node.data["type"] for node in nodes.values() if "type" in node.data}
    any_kind = any("kind" in node.data for node in nodes.values())
    switches = [node for node in nodes.values() if not _is_host(node, any_kind)]
    attached = [node for node in nodes.values() if _is_host(node, any_kind)]
    index = {node.name: i for i, node in enumerate(switches)}
    if not switches:
        raise FabricError("the graph has no switch: no node, or only nodes of kind host")
    links_of_graph = _undirected(edges, notes)
    numbers = {node.name: f"s{i}" for i, node in enumerate(switches, 1)}
    numbers |= {node.name: f"h{i}" for i, node in enumerate(attached, 1)}
    names = _names([*nodes.values()], numbers, notes)
    links, cables = [], dict[str, tuple[Element, int]]()
    for edge in links_of_graph:
        for node in edge.ends:
            if node not in nodes:
                raise edge.error(f"unknown node {node[:60]!r}")
        ends = [node for node in edge.ends if node in index]
        if not ends:
            raise edge.error("connects two hosts; a host must have one link, to a switch")
        if len(ends) == 2:
            links.append(_link(edge, index))
            continue
        (host,) = (node for node in edge.ends if node not in index)
        if host in cables:
            raise edge.error(f"host {host[:60]!r} already has a link; a host has only one")
        cables[host] = (edge, edge.ends.index(ends[0]))
    hosts = [_host(node, names[node.name], cables, index) for node in attached]
    hosts += _more_hosts(switches, {*names.values()}, len(hosts))
    partial = [PartialSwitch(names[node.name], node.whole("dpid")) for node in switches]
    if any_kind and types:
        notes.append("type is ignored, because there is kind")
    elif others := sorted(types - {"switch", "host"}):
        notes.append(
            f"nodes of these types are taken for switches: {listed(map(repr, others), _NAMED)}"
        )
    return complete(name, partial, hosts, links).with_notes([*notes, *ignored])


def notes_on_ignored(ignored: Mapping[str, Iterable[str]]) -> list[str]:
    """Return which data of nodes and edges have not been read; ``ignored`` has their names."""
    return [
        f"data of {kind}s that are not read: {listed((name[:40] for name in names), _NAMED)};"
        f" read are {', '.join(READ[kind])}"
        for kind, names in ignored.items()
        if names
    ]


def _linked(
    nodes: Mapping[str, Element], edges: Sequence[Element], notes: list[str]
) -> Mapping[str, Element]:
    """Return the nodes without those that no edge joins to the fabric, which a note names."""
    ends = {end for edge in edges for end in edge.ends}
    linked = {name for name, node in nodes.items() if name in ends or _has_hosts(node)}
    if linked == nodes.keys() or all(_has_hosts(nodes[name]) for name in linked):
        return nodes
    alone = [name for name in nodes if name not in linked]
    notes.append(f"nodes without a link are left out: {listed(alone, _NAMED)}")
    return {name: node for name, node in nodes.items() if name in linked}


def _has_hosts(node: Element) -> bool:
    """Tell whether a node says that it is a host or has hosts."""
    return "host" in (node.data.get("kind"), node.data.get("type")) or "hosts" in node.data


def _is_host(node: Element, any_kind: bool) -> bool:
    if not any_kind:
        return node.data.get("type") == "host"
    kind = node.data.get("kind", "switch")
    if kind not in ("switch", "host"):
        raise node.error(f"kind must be switch or host, not {kind[:40]!r}")
    return kind == "host"


def _names(
    nodes: Sequence[Element], numbers: Mapping[str, str], notes: list[str]
) -> dict[str, str]:
    """Return the names of nodes by id: of their labels, or of their ids."""
    labels = {node.name: node.label or node.data.get("label", "") for node in nodes}
    distinct = {*labels.values()} - {""}
    if 2 * len(distinct) < len(nodes):
        if distinct:
            notes.append("labels are not the names of nodes: most are equal or empty")
        labels = dict.fromkeys(labels, "")
    names, changed = valid_names(
        [[labels[node.name], node.name] for node in nodes], [numbers[node.name] for node in nodes]
    )
    notes += changed
    return {node.name: name for node, name in zip(nodes, names, strict=True)}


def _undirected(edges: Sequence[Element], notes: list[str]) -> list[Element]:
    """Return the links; two opposite directed edges are one, if no directed edge lacks another."""
    directed = [edge for edge in edges if edge.directed]
    count = Counter(edge.ends for edge in directed)
    single = [edge for edge in directed if count[edge.ends] != count[edge.ends[::-1]]]
    if not directed:
        return list(edges)
    if len(single) == len(directed) and all(count[e.ends[::-1]] == 0 for e in single):
        notes.append("the direction of edges is ignored: each is a link")
        return list(edges)
    if single:
        raise single[0].error(
            "is directed, and has no opposite edge although other edges have one; write each link"
            " once, or each one in both directions"
        )
    notes.append("two opposite directed edges are one link")
    links: list[Element] = []
    waiting: dict[tuple[str, ...], list[Element]] = {}
    for edge in edges:
        opposite = waiting.get(edge.ends[::-1])
        if edge.directed and opposite:
            _unite(opposite.pop(0), edge)
            continue
        links.append(edge)
        if edge.directed:
            waiting.setdefault(edge.ends, []).append(edge)
    return links


def _unite(edge: Element, opposite: Element) -> None:
    """Add the data of the opposite edge, which must not contradict."""
    for key, value in opposite.data.items():
        own = edge.data.setdefault(_OTHER_END.get(key, key), value)
        if own != value and key in READ["edge"]:
            raise opposite.error(f"{key} is {value[:40]!r}, but {own[:40]!r} the other way")


def _link(edge: Element, index: dict[str, int]) -> PartialLink:
    a, b = edge.ends
    return PartialLink(
        index[a],
        index[b],
        edge.whole("source_port"),
        edge.whole("target_port"),
        edge.number("rate_mbps", DEFAULT_RATE_MBPS),
        edge.number("delay_us", DEFAULT_DELAY_US),
    )


def _host(
    node: Element, name: str, cables: dict[str, tuple[Element, int]], index: dict[str, int]
) -> PartialHost:
    if node.name not in cables:
        raise node.error("a host needs an edge to a switch")
    edge, end = cables[node.name]
    return PartialHost(
        name,
        index[edge.ends[end]],
        edge.whole(("source_port", "target_port")[end]),
        node.data.get("mac"),
        node.data.get("ip"),
        edge.number("rate_mbps", DEFAULT_RATE_MBPS),
        edge.number("delay_us", DEFAULT_DELAY_US),
    )


def _more_hosts(switches: list[Element], taken: set[str], count: int) -> list[PartialHost]:
    """Return the hosts that ``hosts`` data ask for, named with the unused ones of h1, h2.."""
    default = 0 if count or any("hosts" in node.data for node in switches) else 1
    hosts: list[PartialHost] = []
    number = count
    for i, node in enumerate(switches):
        wanted = node.whole("hosts")
        if wanted is not None and wanted > MAX_HOSTS_PER_SWITCH:
            raise node.error(f"hosts must be 0 to {MAX_HOSTS_PER_SWITCH}, not {wanted}")
        for _ in range(default if wanted is None else wanted):
            if len(hosts) == MAX_HOSTS:
                raise node.error(f"there are more than {MAX_HOSTS} hosts")
            number += 1
            while f"h{number}" in taken:
                number += 1
            hosts.append(PartialHost(f"h{number}", i))
    return hosts
