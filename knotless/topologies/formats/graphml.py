"""Fabrics from GraphML, as written by NetworkX, yEd, Gephi or the Internet Topology Zoo.

Data are named by the ``attr.name`` of their key, whose defaults count as well; what becomes of them
is in :mod:`knotless.topologies.formats.graph_elements`. A label is that of yEd or the data
``label``.

The parser is expat. It refuses every document type, so that no entity can expand, and builds no
tree, so that deep nesting uses no memory.

References
----------
Brandes et al.: GraphML progress report, 2001; http://graphml.graphdrawing.org.

"""

from __future__ import annotations

from xml.parsers import expat

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.graph_elements import (
    READ,
    Element,
    fabric_of_graph,
    notes_on_ignored,
)

_LONGEST_VALUE = 1000
_REFUSED = {"hyperedge": "hyperedges (more than two ends)", "port": "GraphML ports"}
_YED = "http://www.yworks.com/xml/graphml"


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
    return fabric_of_graph(name, reader.nodes, reader.edges, notes_on_ignored(reader.ignored))


class _Reader:
    """Collects nodes and edges from expat's events."""

    def __init__(self, encoding: str | None) -> None:
        self.nodes: dict[str, Element] = {}
        self.edges: list[Element] = []
        self._keys: dict[str, str] = {}
        self._defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        self.ignored: dict[str, dict[str, None]] = {"node": {}, "edge": {}}
        self._open: list[Element] = []  # the node or edge being read
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
            node = Element(self._need(tag, given, "id"), f"line {self._line()}")
            if node.name in self.nodes:
                raise node.error("occurs twice")
            self.nodes[node.name] = node
            self._open.append(node)
        elif tag == "edge":
            ends = (self._need(tag, given, "source"), self._need(tag, given, "target"))
            default = "true" if self._directed else "false"
            directed = given.get("directed", default).strip() in ("true", "1")
            self.edges.append(Element("-".join(ends), f"line {self._line()}", ends, directed))
            self._open.append(self.edges[-1])
            ports = (name for name in ("sourceport", "targetport") if name in given)
            self.ignored["edge"].update(dict.fromkeys(ports))
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

    def _close(self, element: Element) -> None:
        """Complete an element with the defaults, and keep which of its data are not read."""
        element.data = self._defaults[element.kind] | element.data
        ignored = self.ignored[element.kind]
        ignored.update(dict.fromkeys(key for key in element.data if key not in READ[element.kind]))
        if element.label and element.kind == "edge":
            ignored["labels"] = None
