"""Fabrics from GraphML, as written by NetworkX, yEd, Gephi or the Internet Topology Zoo.

Nodes are switches, unless their data ``kind`` is ``host``; edges are links. These data are read,
by the ``attr.name`` of their key; others are ignored:

- switch: ``dpid``, and ``hosts``, its number of hosts;
- host (which must have exactly one edge): ``mac``, ``ip``;
- edge: ``source_port``, ``target_port``, ``rate_mbps``, ``delay_us``.

If there are no host nodes and no ``hosts`` data, each switch gets one host. Node ids become names
if all of them are valid names; otherwise the names are s1, s2.. and h1, h2.. in file order.

The parser is expat. It refuses every document type, so that no entity can expand, and builds no
tree, so that deep nesting uses no memory.

References
----------
Brandes et al.: GraphML progress report, 2001; http://graphml.graphdrawing.org.

"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from xml.parsers import expat

from knotless.base.errors import FabricError
from knotless.topologies.fabric import DEFAULT_DELAY_US, DEFAULT_RATE_MBPS, Fabric
from knotless.topologies.numbering import MAX_HOSTS, MAX_HOSTS_PER_SWITCH
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete
from knotless.topologies.validate import is_name

_WHOLE = re.compile(r"[0-9]{1,20}")
_LONGEST_VALUE = 1000
_REFUSED = {"hyperedge": "hyperedges (more than two ends)", "port": "GraphML ports"}


@dataclass
class _Element:
    """A node (``ends`` empty) or an edge, with its data by attribute name."""

    name: str
    line: int
    ends: tuple[str, ...] = ()
    data: dict[str, str] = field(default_factory=dict)

    def error(self, what: str) -> FabricError:
        kind = "edge" if self.ends else "node"
        shown = self.name if len(self.name) <= 60 else self.name[:57] + "..."
        return FabricError(f"line {self.line}: {kind} {shown!r}: {what}")

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


def from_graphml(text: str, name: str) -> Fabric:
    """Return the fabric called ``name`` that the GraphML ``text`` describes, validated.

    Raises
    ------
    FabricError
        The text is not such GraphML, or its fabric is inconsistent; the message names the line
        if there is one.

    """
    reader = _Reader()
    reader.read(text)
    nodes, edges = reader.nodes, reader.edges
    switches = [node for node in nodes.values() if not _is_host(node)]
    attached = [node for node in nodes.values() if _is_host(node)]
    index = {node.name: i for i, node in enumerate(switches)}
    if not switches:
        raise FabricError("the graph has no switch: no node, or only nodes of kind host")
    own_names = all(is_name(node) for node in nodes)
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
    hosts = [
        _host(node, node.name if own_names else f"h{i}", cables, index)
        for i, node in enumerate(attached, 1)
    ]
    hosts += _more_hosts(switches, {*nodes} if own_names else set(), len(hosts))
    partial = [
        PartialSwitch(node.name if own_names else f"s{i}", node.whole("dpid"))
        for i, node in enumerate(switches, 1)
    ]
    return complete(name, partial, hosts, links)


def _is_host(node: _Element) -> bool:
    kind = node.data.get("kind", "switch")
    if kind not in ("switch", "host"):
        raise node.error(f"kind must be switch or host, not {kind[:40]!r}")
    return kind == "host"


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

    def __init__(self) -> None:
        self.nodes: dict[str, _Element] = {}
        self.edges: list[_Element] = []
        self._keys: dict[str, str] = {}
        self._open: list[_Element] = []  # the node or edge being read
        self._key: str | None = None
        self._text: list[str] = []
        self._depth = 0
        self._graphs = 0
        self._parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def read(self, text: str) -> None:
        try:
            self._parser.Parse(text.encode(), True)
        except expat.ExpatError as error:
            raise FabricError(f"not XML: {error}") from None
        if not self._graphs:
            raise FabricError("not GraphML: it has no graph")

    def _line(self) -> int:
        return self._parser.CurrentLineNumber

    def _doctype(self, *_: object) -> None:
        raise FabricError(f"line {self._line()}: a document type (DTD) is not allowed")

    def _need(self, tag: str, given: dict[str, str], key: str) -> str:
        if key not in given:
            raise FabricError(f"line {self._line()}: {tag}: {key} is missing")
        return given[key]

    def _start(self, qualified: str, given: dict[str, str]) -> None:
        tag = qualified.rpartition(" ")[2]
        self._depth += 1
        if self._depth == 1 and tag != "graphml":
            raise FabricError(f"not GraphML: the root element is {tag[:40]!r}, not graphml")
        if tag in _REFUSED:
            raise FabricError(f"line {self._line()}: {_REFUSED[tag]} are not supported")
        if tag == "key":
            self._keys[self._need(tag, given, "id")] = given.get("attr.name", "")
        elif tag == "graph":
            self._graphs += 1
            if self._graphs > 1:
                raise FabricError(f"line {self._line()}: a file must have one graph, not several")
            if given.get("edgedefault") == "directed":
                raise FabricError(
                    f"line {self._line()}: directed graphs are not supported; write each link once"
                )
        elif tag == "node":
            node = _Element(self._need(tag, given, "id"), self._line())
            if node.name in self.nodes:
                raise node.error("occurs twice")
            self.nodes[node.name] = node
            self._open.append(node)
        elif tag == "edge":
            ends = (self._need(tag, given, "source"), self._need(tag, given, "target"))
            self.edges.append(_Element("-".join(ends), self._line(), ends))
            self._open.append(self.edges[-1])
        elif tag == "data" and self._open:
            self._key = self._keys.get(self._need(tag, given, "key"))
            self._text = []

    def _characters(self, text: str) -> None:
        if self._key is not None and len(self._text) < _LONGEST_VALUE:
            self._text.append(text)

    def _end(self, qualified: str) -> None:
        tag = qualified.rpartition(" ")[2]
        self._depth -= 1
        if tag in ("node", "edge"):
            self._open.pop()
        elif tag == "data" and self._key is not None:
            self._open[-1].data[self._key] = "".join(self._text).strip()[:_LONGEST_VALUE]
            self._key = None
