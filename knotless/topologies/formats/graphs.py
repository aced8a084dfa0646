"""Graphs of NetworkX, and topologies of TopoHub, as fabrics; both packages are optional.

References
----------
TopoHub: a repository of reference Gabriel and real-world topologies for networking research.
SoftwareX 24, 2023; https://www.topohub.org.

"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from knotless.base.errors import FabricError
from knotless.topologies.fabric import DEFAULT_RATE_MBPS, Fabric
from knotless.topologies.formats.graphml import from_graphml
from knotless.topologies.formats.node_names import valid_names
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete
from knotless.topologies.validate import is_name

TOPOHUB = "topohub:"
"""What a fabric of TopoHub begins with, as in ``topohub:sndlib/abilene``."""
FIBRE_US_PER_KM = 4.9
"""Delay of light in optical fibre, whose refractive index is about 1.47."""
_EXTRA = "pip install 'knotless[graphs]'"


def from_networkx(graph: Any, name: str = "graph") -> Fabric:
    """Return the fabric of a graph of NetworkX.

    Nodes and edges have the data that GraphML has (docs/fabric-files.md): nodes ``kind``, ``dpid``,
    ``hosts``, ``mac``, ``ip``; edges ``source_port``, ``target_port``, ``rate_mbps``, ``delay_us``.
    Without any, each node is a switch with one host.

    Parameters
    ----------
    graph : networkx.Graph or a subclass
        The graph.
    name : str
        The fabric's name.

    Returns
    -------
    Fabric
        The fabric, validated.

    Raises
    ------
    FabricError
        NetworkX is not installed, or cannot write the graph as GraphML, or its fabric is
        inconsistent.

    Examples
    --------
    ::

        fabric = knotless.from_networkx(networkx.petersen_graph())
        knotless.plan(fabric, engine="updown").acyclic

    """
    networkx = _package("networkx")
    if not isinstance(graph, networkx.Graph):
        raise FabricError(
            f"graph: {repr(graph)[:40]} is no graph of NetworkX, such as networkx.petersen_graph()"
        )
    try:
        text = "\n".join(networkx.generate_graphml(graph))
    except (networkx.NetworkXException, TypeError, ValueError, AttributeError) as problem:
        why = " ".join(str(problem).split())[:200]
        raise FabricError(f"{name}: NetworkX cannot write it as GraphML: {why}") from problem
    return from_graphml(text, name)


def to_networkx(fabric: Fabric) -> Any:
    """Return a fabric as a ``networkx.MultiGraph``, which :func:`from_networkx` reads back.

    Parameters
    ----------
    fabric : Fabric
        The fabric.

    Returns
    -------
    networkx.MultiGraph
        A node for each switch (``kind`` is ``switch``) and host, an edge for each link.
        ``source_port`` is at the end that was added to the graph first.

    Raises
    ------
    FabricError
        NetworkX is not installed.

    """
    graph = _package("networkx").MultiGraph(name=fabric.name)
    for switch in fabric.switches:
        graph.add_node(switch.name, kind="switch", dpid=switch.dpid)
    for host in fabric.hosts:
        graph.add_node(host.name, kind="host", mac=host.mac, ip=host.ip)
    for link in fabric.links:
        ends = [(link.a, link.a_port), (link.b, link.b_port)]
        # NetworkX lists an edge from the node that was added first.
        (a, a_port), (b, b_port) = sorted(ends, key=lambda end: fabric.switch_index[end[0]])
        graph.add_edge(
            a,
            b,
            source_port=a_port,
            target_port=b_port,
            rate_mbps=link.rate_mbps,
            delay_us=link.delay_us,
        )
    for host in fabric.hosts:
        graph.add_edge(
            host.switch,
            host.name,
            source_port=host.port,
            rate_mbps=host.rate_mbps,
            delay_us=host.delay_us,
        )
    return graph


def from_topohub(spec: str) -> Fabric:
    """Return a topology of TopoHub: each node is a switch with a host.

    The delay of a link follows from its length in optical fibre.

    Parameters
    ----------
    spec : str
        ``topohub:GROUP/NAME``, such as ``topohub:sndlib/abilene``.

    Returns
    -------
    Fabric
        The fabric, validated, with ``spec`` as its name.

    Raises
    ------
    FabricError
        TopoHub is not installed, has no such topology, or it is no fabric.

    """
    topohub = _package("topohub")
    key = spec.removeprefix(TOPOHUB)
    if not all(is_name(part) for part in key.split("/")) or "/" not in key:
        raise FabricError(f"{spec[:80]}: write a topology of TopoHub as topohub:sndlib/abilene")
    try:
        graph = topohub.get(key)
    except (KeyError, OSError, ValueError):
        raise FabricError(
            f"{spec[:80]}: TopoHub has no such topology; see https://www.topohub.org"
        ) from None
    try:
        ids = [node["id"] for node in graph["nodes"]]
        named = [str(node.get("name") or "") for node in graph["nodes"]]
        index = {node: i for i, node in enumerate(ids)}
        edges = [
            (index[edge["source"]], index[edge["target"]], float(edge.get("dist", 0.0)))
            for edge in graph.get("edges", graph.get("links", []))
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise FabricError(f"{spec[:80]}: not a topology: {type(problem).__name__}") from None
    hosts = [f"h{i}" for i in range(1, len(ids) + 1)]
    names, notes = valid_names(
        [[host] for host in hosts] + [[name] for name in named],
        [*hosts, *(f"s{i}" for i in range(1, len(ids) + 1))],
    )
    links = [
        PartialLink(a, b, rate_mbps=DEFAULT_RATE_MBPS, delay_us=math.ceil(FIBRE_US_PER_KM * km))
        for a, b, km in edges
        if a != b
    ]
    return complete(
        spec,
        [PartialSwitch(name) for name in names[len(ids) :]],
        [PartialHost(name, i) for i, name in enumerate(hosts)],
        links,
    ).with_notes(notes)


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise FabricError(f"{name} is not installed: {_EXTRA}") from None
