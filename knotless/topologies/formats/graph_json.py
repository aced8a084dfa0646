"""Graphs as JSON: node-link data of NetworkX, D3 and TopoHub, and elements of Cytoscape.

::

    {"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b"}]}
    {"elements": {"nodes": [{"data": {"id": "a"}}],
                  "edges": [{"data": {"source": "a", "target": "b"}}]}}

Nodes and edges have the data of :mod:`knotless.topologies.formats.graph_elements`. ``name`` is a
label too. NetworkX 3.4 and later calls links ``edges``. Nodes of D3 without ``id`` are meant by
their place in the list. The elements of Cytoscape.js may be in one list.

References
----------
NetworkX, ``networkx.node_link_data`` and ``networkx.cytoscape_data``; Cytoscape.js, Elements JSON,
https://js.cytoscape.org.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.graph_elements import (
    READ,
    Element,
    fabric_of_graph,
    notes_on_ignored,
)

_MARKS = {"id", "name", "value", "source", "target", "key"}
"""What identifies a node or edge, or is its label."""

Item = tuple[str, Mapping[str, Any]]
"""The place of a node or edge in the file, and its data."""


def is_graph(value: object) -> bool:
    """Tell whether a value of JSON is a graph in one of these formats."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, dict) and "data" in one for one in value)
    if not isinstance(value, dict):
        return False
    return "elements" in value or ("nodes" in value and ("links" in value or "edges" in value))


def from_graph_json(value: object, name: str) -> Fabric:
    """Return the fabric called ``name`` of a graph, for which :func:`is_graph` is true.

    Raises
    ------
    FabricError
        A node or edge lacks what it needs, or the fabric is inconsistent.

    """
    directed = isinstance(value, dict) and value.get("directed") is True
    nodes_of, edges_of = _items(value)
    ignored: dict[str, dict[str, None]] = {"node": {}, "edge": {}}
    nodes: dict[str, Element] = {}
    for number, (where, given) in enumerate(nodes_of):
        node = Element(_id(where, given.get("id", number)), where, label=_label(given))
        if node.name in nodes:
            raise node.error("occurs twice")
        node.data = _data(node, given, ignored)
        nodes[node.name] = node
    edges = []
    for where, given in edges_of:
        for end in ("source", "target"):
            if end not in given:
                raise FabricError(f"{where}: {end} is missing")
        ends = (_id(where, given["source"]), _id(where, given["target"]))
        edge = Element("-".join(ends), where, ends, directed)
        edge.data = _data(edge, given, ignored)
        edges.append(edge)
    return fabric_of_graph(name, nodes, edges, notes_on_ignored(ignored))


def _items(value: object) -> tuple[list[Item], list[Item]]:
    """Return the nodes and the edges."""
    if isinstance(value, dict) and "elements" not in value:
        edges = "links" if "links" in value else "edges"
        return [*_plain("nodes", value["nodes"])], [*_plain(edges, value[edges])]
    elements = value["elements"] if isinstance(value, dict) else value
    if isinstance(elements, dict):
        nodes, edges_ = (elements.get(key, []) for key in ("nodes", "edges"))
        return [*_wrapped("nodes", nodes)], [*_wrapped("edges", edges_)]
    every = [*_wrapped("elements", elements)]
    return [one for one in every if "source" not in one[1]], [
        one for one in every if "source" in one[1]
    ]


def _plain(key: str, values: object) -> Iterator[Item]:
    for number, given in enumerate(_list(key, values)):
        where = f"{key}[{number}]"
        if not isinstance(given, dict):
            raise FabricError(f"{where}: must be an object")
        yield where, given


def _wrapped(key: str, values: object) -> Iterator[Item]:
    for where, given in _plain(key, values):
        data = given.get("data")
        if not isinstance(data, dict):
            raise FabricError(f"{where}: data must be an object")
        yield where, data


def _list(key: str, values: object) -> Sequence[object]:
    if not isinstance(values, list):
        raise FabricError(f"{key} must be a list")
    return values


def _id(where: str, value: object) -> str:
    """Return an id as text; NetworkX writes tuples, such as places of a grid, as lists."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str | int | float) for part in parts):
        raise FabricError(f"{where}: the id of a node must be text, a number or a list of these")
    text = ", ".join(map(str, parts))
    return f"({text})" if isinstance(value, list) else text


def _label(given: Mapping[str, Any]) -> str:
    return next((given[key] for key in ("label", "name") if isinstance(given.get(key), str)), "")


def _data(
    element: Element, given: Mapping[str, Any], ignored: dict[str, dict[str, None]]
) -> dict[str, str]:
    """Return the data that are read, as text; the names of others are added to ``ignored``."""
    data = {}
    for key, value in given.items():
        if key in READ[element.kind]:
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                data[key] = str(value)
            elif value is not None:
                raise element.error(f"{key} must be text or a number")
        elif key not in _MARKS:
            ignored[element.kind][key] = None
    return data
