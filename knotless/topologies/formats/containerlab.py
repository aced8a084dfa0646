"""Fabrics from the topology files of containerlab (``*.clab.yml``).

Nodes are switches, except those of kind ``linux`` with one link, which are hosts: the kind is that
of servers, and of routers such as FRR, which have several links. Notes name the hosts. If there
are none, each switch gets one. The numbers at the end of interfaces (``eth2``, ``e1-2``) are ports
where all interfaces of a switch have different ones, from 1; rates and delays are the default ones.

Links to the machine that runs the lab (``host:``, ``mgmt-net:``, ``macvlan:``..) are left out, and
so are nodes without links, such as collectors of telemetry. Nodes that share the network of another
one (``network-mode: container:NODE``), such as cards of a router, are parts of it.

References
----------
https://containerlab.dev/manual/topo-def-file, https://containerlab.dev/manual/links.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from knotless.base.complaints import brief
from knotless.base.errors import FabricError
from knotless.base.printable import listed
from knotless.base.yaml_file import parse
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.cabling import End, one_host_each, ports_of
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete
from knotless.topologies.validate import is_name

MAX_CHARACTERS = 1 << 22
"""PyYAML needs seconds for a megabyte."""
_OUTSIDE = {"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"}
_HOST_KIND = "linux"
_SHARED = "container:"
_NAMED = 30


def from_containerlab(text: str, name: str) -> Fabric:
    """Return the fabric called ``name`` that a topology file of containerlab describes.

    Raises
    ------
    FabricError
        The text is no such file, or its fabric is inconsistent.

    """
    if len(text) > MAX_CHARACTERS:
        raise FabricError(f"YAML of {len(text)} characters is too long, at most {MAX_CHARACTERS}")
    topology = _mapping(parse(text, FabricError), "topology")
    kinds, whole_of = _nodes(topology)
    notes: list[str] = []
    if parts := [f"{part} of {whole}" for part, whole in whole_of.items() if part != whole]:
        notes.append(f"nodes that share another's network are parts of it: {listed(parts, _NAMED)}")
    cables: list[tuple[End, End]] = []
    inside: list[str] = []
    for one, other in _cables(topology, kinds, notes):
        if one[0] != other[0] and whole_of[one[0]] == whole_of[other[0]]:
            inside.append(f"{':'.join(one)}-{':'.join(other)}")
        else:
            cables.append(((whole_of[one[0]], one[1]), (whole_of[other[0]], other[1])))
    if inside:
        notes.append(f"links inside of a node are left out: {listed(inside, _NAMED)}")
    degree = Counter(node for ends in cables for node, _ in ends)
    nodes = [node for node in kinds if whole_of[node] == node]
    if cables and (alone := [node for node in nodes if not degree[node]]):
        notes.append(f"nodes without a link are left out: {listed(alone, _NAMED)}")
        nodes = [node for node in nodes if degree[node]]
    is_host = {node: kinds[node] == _HOST_KIND and degree[node] == 1 for node in nodes}
    hosts = [node for node in nodes if is_host[node]]
    if hosts:
        notes.append(f"nodes of kind {_HOST_KIND} with one link are hosts: {listed(hosts)}")
    index = {node: i for i, node in enumerate(node for node in nodes if not is_host[node])}
    ports = ports_of(cables)
    links, cable_of = [], {}
    for a, b in cables:
        if a[0] in index and b[0] in index:
            links.append(PartialLink(index[a[0]], index[b[0]], ports.get(a), ports.get(b)))
        elif a[0] not in index and b[0] not in index:
            raise FabricError(f"a link joins {a[0]!r} and {b[0]!r}, both of kind {_HOST_KIND}")
        else:
            host, switch = (a, b) if b[0] in index else (b, a)
            cable_of[host[0]] = switch
    partial = [
        PartialHost(host, index[cable_of[host][0]], ports.get(cable_of[host])) for host in hosts
    ]
    partial = partial or one_host_each(index)
    return complete(name, [*map(PartialSwitch, index)], partial, links).with_notes(notes)


def _nodes(topology: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the kind of each node, its own, that of its group or the default, and its whole.

    The whole is the node whose network it shares, or itself.
    """
    defaults = _mapping(topology, "defaults", optional=True)
    groups = _mapping(topology, "groups", optional=True)
    kinds, shares = {}, {}
    for node, values in _mapping(topology, "nodes").items():
        if not isinstance(node, str) or not is_name(node):
            raise FabricError(f"topology: nodes: {brief(node)} is no name of a switch or host")
        own = {} if values is None else values
        if not isinstance(own, Mapping):
            raise FabricError(f"topology: nodes: {node}: must be a mapping, not {brief(own)}")
        group = groups.get(str(own.get("group")))
        inherited = group if isinstance(group, Mapping) else {}
        kinds[node] = str(own.get("kind", inherited.get("kind", defaults.get("kind", ""))))[:60]
        mode = str(own.get("network-mode", ""))
        shares[node] = mode.removeprefix(_SHARED) if mode.startswith(_SHARED) else node
    whole_of = {}
    for node in kinds:
        whole, seen = node, {node}
        while shares[whole] != whole and shares[whole] in kinds:  # else a container of others
            whole = shares[whole]
            if whole in seen:
                raise FabricError(f"topology: nodes: {node}: network-mode leads back to {whole}")
            seen.add(whole)
        whole_of[node] = whole
    return kinds, whole_of


def _cables(
    topology: Mapping[str, Any], kinds: Mapping[str, str], notes: list[str]
) -> Iterator[tuple[End, End]]:
    links = topology.get("links") or []
    if not isinstance(links, list):
        raise FabricError(f"topology: links must be a list, not {brief(links)}")
    outside = []
    for number, link in enumerate(links):
        where = f"topology: links[{number}]"
        if isinstance(link, Mapping) and link.get("type", "veth") != "veth":
            outside.append(where)
            continue
        both = link.get("endpoints") if isinstance(link, Mapping) else None
        if not isinstance(both, list) or len(both) != 2:
            raise FabricError(f"{where}: needs two endpoints, NODE:INTERFACE, not {brief(link)}")
        a, b = (_end(end, where) for end in both)
        if {a[0], b[0]} & _OUTSIDE - {*kinds}:
            outside.append(where)
            continue
        for node in (a[0], b[0]):
            if node not in kinds:
                raise FabricError(f"{where}: unknown node {node[:60]!r}")
        yield a, b
    if outside:
        notes.append(f"links that lead out of the lab are ignored: {listed(outside)}")


def _end(end: object, where: str) -> End:
    """Return an endpoint, which is ``NODE:INTERFACE`` or a mapping."""
    if isinstance(end, Mapping):
        node, interface = end.get("node"), end.get("interface")
    else:
        node, _, interface = end.partition(":") if isinstance(end, str) else (None, "", None)
    if not (isinstance(node, str) and isinstance(interface, str) and node and interface):
        raise FabricError(f"{where}: an endpoint is written NODE:INTERFACE, not {brief(end)}")
    return node, interface


def _mapping(values: object, key: str, *, optional: bool = False) -> Mapping[str, Any]:
    """Return the mapping that ``values`` have for ``key``; raises FabricError."""
    value = values.get(key) if isinstance(values, Mapping) else None
    if value is None and optional:
        return {}
    if value is None:
        raise FabricError(f"{key} is missing")
    if not isinstance(value, Mapping):
        raise FabricError(f"{key} must be a mapping, not {brief(value)}")
    return value
