"""Fabrics from GraphML, as written by NetworkX, yEd, Gephi or the Internet Topology Zoo.

Nodes are switches, unless their data ``kind`` is ``host`` (or, without any ``kind``, their
``type``); edges are links. These data are read, by the ``attr.name`` of their key, and so are the
defaults of keys; notes name all others:

- node: ``label``;
- switch: ``dpid``, and ``hosts``, its number of hosts;
- host (which must have exactly one edge): ``mac``, ``ip``;
- edge: ``source_port``, ``target_port``, ``rate_mbps``, ``delay_us``.

If there are no host nodes and no ``hosts`` data, each switch gets one host. Names are the labels of
yEd or the data ``label`` if most of them are distinct, else the ids of nodes, each changed as far
as it must be (:func:`knotless.topologies.formats.node_names.valid_names`); those that cannot be
names at all are s1, s2.. and h1, h2.. in file order.

A directed edge is a link as well, because yEd draws all edges as directed ones. Where each directed
edge has an opposite one, as when NetworkX writes a directed graph, both are one link.

The parser is expat. It refuses every document type, so that no entity can expand, and builds no
tree, so that deep nesting uses no memory.

References
----------
Brandes et al.: GraphML progress report, 2001; http://graphml.graphdrawing.org.

"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

from knotless.base.errors import FabricError
from knotless.base.printable import listed
from knotless.topologies.fabric import DEFAULT_DELAY_US, DEFAULT_RATE_MBPS, Fabric
from knotless.topologies.formats.node_names import valid_names
from knotless.topologies.numbering import MAX_HOSTS, MAX_HOSTS_PER_SWITCH
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

_WHOLE = re.compile(r"[0-9]{1,20}")
_LONGEST_VALUE = 1000
_REFUSED = {"hyperedge": "hyperedges (more than two ends)", "port": "GraphML ports"}
_YED = "http://www.yworks.com/xml/graphml"
_READ = {
    "node": ("label", "kind", "type", "dpid", "hosts", "mac", "ip"),
    "edge": ("source_port", "target_port", "rate_mbps", "delay_us"),
}
_OTHER_END = {"source_port": "target_port", "target_port": "source_port"}
_NAMED = 30


@dataclass
class _Element:
    """A node (``ends`` empty) or an edge, with its data by attribute name."""

    name: str
    line: int
    ends: tuple[str, ...] = ()
    directed: bool = False
    label: str = ""
    data: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What GraphML calls the element."""
        return "edge" if self.ends else "node"

    def error(self, what: str) -> FabricError:
        shown = self.name if len(self.name) <= 60 else self.name[:57] + "..."
        return FabricError(f"line {self.line}: {self.kind} {shown!r}: {what}")

    def whole(self, key: str) -> int | None:
        text = self.data.get(key)
        if text is None:
            return None
        if not _WHOLE.fullmatch(text):
            raise self.error(f"{key} must be a whole number, not {text[:40]!r}")
        return int(text)

    def number(self, key: str, default: float) -> float:
        text = self.data.get(key)
        try:
            value = default if text is None else float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f"{key} must be a number, not {str(text)[:40]!r}")
        return value


def from_graphml(text: str | bytes, name: str) -> Fabric:
    """Return the fabric called ``name`` that the GraphML ``text`` describes, validated.

    Bytes have the encoding that they declare, as XML does: UTF-8, UTF-16, ISO-8859-1..

    Raises
    ------
    FabricError
        The text is not such GraphML, or its fabric is inconsistent; the message names the line
        if there is one.

    """
    reader = _Reader("utf-8" if isinstance(text, str) else None)
    reader.read(text.encode() if isinstance(text, str) else text)
    nodes, notes = reader.nodes, list[str]()
    types = {node.data["type"] for node in nodes.values() if "type" in node.data}
    any_kind = any("kind" in node.data for node in nodes.values())
    switches = [node for node in nodes.values() if not _is_host(node, any_kind)]
    attached = [node for node in nodes.values() if _is_host(node, any_kind)]
    index = {node.name: i for i, node in enumerate(switches)}
    if not switches:
        raise FabricError("the graph has no switch: no node, or only nodes of kind host")
    edges = _undirected(reader.edges, notes)
    numbers = {node.name: f"s{i}" for i, node in enumerate(switches, 1)}
    numbers |= {node.name: f"h{i}" for i, node in enumerate(attached, 1)}
    names = _names([*nodes.values()], numbers, notes)
    links, cables = [], dict[str, tuple[_Element, int]]()
    for edge in edges:
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
    return complete(name, partial, hosts, links).with_notes([*notes, *reader.notes()])


def _is_host(node: _Element, any_kind: bool) -> bool:
    if not any_kind:
        return node.data.get("type") == "host"
    kind = node.data.get("kind", "switch")
    if kind not in ("switch", "host"):
        raise node.error(f"kind must be switch or host, not {kind[:40]!r}")
    return kind == "host"


def _names(
    nodes: Sequence[_Element], numbers: Mapping[str, str], notes: list[str]
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


def _undirected(edges: Sequence[_Element], notes: list[str]) -> list[_Element]:
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
    links: list[_Element] = []
    waiting: dict[tuple[str, ...], list[_Element]] = {}
    for edge in edges:
        opposite = waiting.get(edge.ends[::-1])
        if edge.directed and opposite:
            _unite(opposite.pop(0), edge)
            continue
        links.append(edge)
        if edge.directed:
            waiting.setdefault(edge.ends, []).append(edge)
    return links


def _unite(edge: _Element, opposite: _Element) -> None:
    """Add the data of the opposite edge, which must not contradict."""
    for key, value in opposite.data.items():
        own = edge.data.setdefault(_OTHER_END.get(key, key), value)
        if own != value and key in _READ["edge"]:
            raise opposite.error(f"{key} is {value[:40]!r}, but {own[:40]!r} the other way")


def _link(edge: _Element, index: dict[str, int]) -> PartialLink:
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
    node: _Element, name: str, cables: dict[str, tuple[_Element, int]], index: dict[str, int]
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


def _more_hosts(switches: list[_Element], taken: set[str], count: int) -> list[PartialHost]:
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


class _Reader:
    """Collects nodes and edges from expat's events."""

    def __init__(self, encoding: str | None) -> None:
        self.nodes: dict[str, _Element] = {}
        self.edges: list[_Element] = []
        self._keys: dict[str, str] = {}
        self._defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        self._ignored: dict[str, dict[str, None]] = {"node": {}, "edge": {}}
        self._open: list[_Element] = []  # the node or edge being read
        self._text: list[str] | None = None  # of the data, default or label being read
        self._key = ""
        self._key_for = ""
        self._namespace = ""
        self._directed = False
        self._depth = 0
        self._graphs = 0
        self._parser = expat.ParserCreate(encoding, namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def read(self, text: bytes) -> None:
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            raise FabricError(f"not XML: {error}") from None
        except (LookupError, ValueError) as error:  # an encoding that Python or expat has not
            raise FabricError(f"not XML: {error}") from None
        if not self._graphs:
            raise FabricError("not GraphML: it has no graph")

    def notes(self) -> list[str]:
        """Return which data of nodes and edges have not been read."""
        return [
            f"data of {kind}s that are not read:"
            f" {listed((name[:40] for name in ignored), _NAMED)}; read are {', '.join(_READ[kind])}"
            for kind, ignored in self._ignored.items()
            if ignored
        ]

    def _line(self) -> int:
        return self._parser.CurrentLineNumber

    def _doctype(self, *_: object) -> None:
        raise FabricError(f"line {self._line()}: a document type (DTD) is not allowed")

    def _need(self, tag: str, given: dict[str, str], key: str) -> str:
        if key not in given:
            raise FabricError(f"line {self._line()}: {tag}: {key} is missing")
        return given[key]

    def _start(self, qualified: str, given: dict[str, str]) -> None:
        namespace, _, tag = qualified.rpartition(" ")
        self._depth += 1
        if self._depth == 1:
            if tag != "graphml":
                raise FabricError(
                    f"not GraphML: the root element is {tag[:40]!r}, not graphml; of XML formats,"
                    " only GraphML is read"
                )
            self._namespace = namespace
        if namespace != self._namespace:
            self._start_foreign(namespace, tag, given)
            return
        if tag in _REFUSED:
            raise FabricError(f"line {self._line()}: {_REFUSED[tag]} are not supported")
        if tag == "key":
            self._key = given.get("attr.name", "")
            self._key_for = given.get("for", "all")
            self._keys[self._need(tag, given, "id")] = self._key
        elif tag == "graph":
            self._graphs += 1
            if self._graphs > 1:
                raise FabricError(f"line {self._line()}: a file must have one graph, not several")
            self._directed = given.get("edgedefault") == "directed"
        elif tag == "node":
            node = _Element(self._need(tag, given, "id"), self._line())
            if node.name in self.nodes:
                raise node.error("occurs twice")
            self.nodes[node.name] = node
            self._open.append(node)
        elif tag == "edge":
            ends = (self._need(tag, given, "source"), self._need(tag, given, "target"))
            default = "true" if self._directed else "false"
            directed = given.get("directed", default).strip() in ("true", "1")
            self.edges.append(_Element("-".join(ends), self._line(), ends, directed))
            self._open.append(self.edges[-1])
            ports = (name for name in ("sourceport", "targetport") if name in given)
            self._ignored["edge"].update(dict.fromkeys(ports))
        elif tag == "data" and self._open:
            key = self._need(tag, given, "key")
            self._key = self._keys.get(key, key)
            self._text = []
        elif tag == "default":
            self._text = []

    def _start_foreign(self, namespace: str, tag: str, given: dict[str, str]) -> None:
        """Begin an element of another namespace: those of yEd tell labels and arrows."""
        if namespace != _YED or not self._open:
            return
        if tag in ("NodeLabel", "EdgeLabel"):
            self._text = []
        elif tag == "Arrows" and given.get("source") == given.get("target") == "none":
            self._open[-1].directed = False

    def _characters(self, text: str) -> None:
        if self._text is not None and len(self._text) < _LONGEST_VALUE:
            self._text.append(text)

    def _end(self, qualified: str) -> None:
        namespace, _, tag = qualified.rpartition(" ")
        self._depth -= 1
        text = "".join(self._text or ()).strip()[:_LONGEST_VALUE]
        if namespace != self._namespace:
            if namespace == _YED and tag in ("NodeLabel", "EdgeLabel") and self._open:
                self._open[-1].label = self._open[-1].label or text
                self._text = None
        elif tag in ("node", "edge"):
            self._close(self._open.pop())
        elif tag == "data":
            if self._text is not None and text and self._key:
                self._open[-1].data[self._key] = text
            self._text = None
        elif tag == "default":
            for kind, defaults in self._defaults.items():
                if text and self._key_for in (kind, "all"):
                    defaults[self._key] = text
            self._text = None

    def _close(self, element: _Element) -> None:
        """Complete an element with the defaults, and keep which of its data are not read."""
        element.data = self._defaults[element.kind] | element.data
        ignored = self._ignored[element.kind]
        ignored.update(dict.fromkeys(key for key in element.data if key not in _READ[element.kind]))
        if element.label and element.kind == "edge":
            ignored["labels"] = None
