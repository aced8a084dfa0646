"""The nodes, cables and LIDs of an InfiniBand subnet."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import FabricError
from knotless.importers.infiniband.lfts import MAX_LID
from knotless.routing.graphs.channels import Channels, End, channels_of
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.ibnetdiscover import Discovered
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete
from knotless.topologies.validate import is_name

_MANAGED = re.compile(r"MF\d;(?P<name>[^:]+):[^/]*/?(?P<unit>.*)")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Subnet:
    """The nodes of a subnet. Destinations are LIDs: first the base LID of each host.

    ``lids`` are by destination, -1: unknown; ``owner`` is the host of each destination, or
    -1 - switch for that of a switch itself. Destinations of hosts come first. ``aggregating`` is
    whether a host is an aggregation node: a part of a switch that computes, with a port inside.
    ``loopbacks`` are the ports, by switch, of cables that connect a switch to itself.
    """

    fabric: Fabric
    channels: Channels
    guids: tuple[int, ...]
    host_guids: tuple[tuple[int, int], ...]
    lids: NDArray[np.int32]
    owner: NDArray[np.int32]
    switch_lids: NDArray[np.int32]
    aggregating: NDArray[np.bool_]
    loopbacks: frozenset[End]

    @property
    def ends(self) -> list[End]:
        """The switch and port of each destination."""
        index, hosts = self.fabric.switch_index, self.fabric.hosts
        of_host = [(index[host.switch], host.port) for host in hosts]
        return [of_host[owner] if owner >= 0 else (-1 - owner, 0) for owner in self.owner.tolist()]

    def with_switches(self) -> Subnet:
        """Return the subnet with the LIDs of its switches as destinations."""
        switches = np.flatnonzero(self.switch_lids > 0)
        return replace(
            self,
            lids=np.concatenate([self.lids, self.switch_lids[switches]]),
            owner=np.concatenate([self.owner, (-1 - switches).astype(np.int32)]),
        )


def subnet_of(name: str, discovered: Discovered) -> Subnet:
    """Return the subnet of an ibnetdiscover output; raises FabricError if it contradicts itself.

    Nodes are called by their descriptions, in characters that names may have, where these are
    distinct, otherwise by their ids; the ports of an adapter with several ones have ``-PORT``
    appended. They are in the order of their GUIDs, so that it does not matter where ibnetdiscover
    was run.
    """

    def place(node: str) -> tuple[int, str]:
        return int(node[2:], 16), node

    switches = sorted(discovered.switches, key=place)
    adapters = sorted(discovered.adapters(), key=lambda ends: (*place(ends[0][0]), ends[0][1]))
    names = _names(discovered)
    index = {node: i for i, node in enumerate(switches)}
    ports = Counter(node for (node, _), _ in adapters)
    called = [names[a] if ports[a] == 1 else f"{names[a]}-{port}" for (a, port), _ in adapters]
    taken = Counter([*called, *(names[node] for node in switches)])
    called = [
        text if taken[text] == 1 else f"{a}-{port}"
        for text, ((a, port), _) in zip(called, adapters, strict=True)
    ]
    fabric = complete(
        name,
        [PartialSwitch(names[node], int(node[2:], 16)) for node in switches],
        [
            PartialHost(host, index[switch_port[0]], switch_port[1])
            for host, (_, switch_port) in zip(called, adapters, strict=True)
        ],
        [PartialLink(index[a[0]], index[b[0]], a[1], b[1]) for a, b in discovered.links()],
        whole=False,
    )
    ids = [discovered.ids.get(adapter) for adapter, _ in adapters]
    base = [port_ids.lid if port_ids and 0 < port_ids.lid <= MAX_LID else -1 for port_ids in ids]
    more = [
        (lid, host)
        for host, port_ids in enumerate(ids)
        if port_ids and base[host] > 0
        for lid in range(port_ids.lid + 1, min(port_ids.lid + 2**port_ids.lmc, MAX_LID + 1))
    ]
    lids = [*(lid for lid in base if lid > 0), *(lid for lid, _ in more)]
    if twice := [lid for lid, times in Counter(lids).items() if times > 1]:
        raise FabricError(f"LID {twice[0]} belongs to two ports")
    return Subnet(
        fabric,
        channels_of(fabric),
        tuple(int(node[2:], 16) for node in switches),
        tuple(
            (port_ids.guid if port_ids else 0, int(adapter[0][2:], 16))
            for port_ids, (adapter, _) in zip(ids, adapters, strict=True)
        ),
        np.array([*base, *(lid for lid, _ in more)], dtype=np.int32),
        np.array([*range(len(ids)), *(host for _, host in more)], dtype=np.int32),
        np.array([_lid_of_switch(discovered, node) for node in switches], dtype=np.int32),
        np.array([node in discovered.aggregation_nodes for (node, _), _ in adapters], dtype=bool),
        frozenset((index[node], port) for ends in discovered.loopbacks() for node, port in ends),
    )


def _lid_of_switch(discovered: Discovered, node: str) -> int:
    """Return the LID of port 0 of a switch; -1: unknown."""
    ids = discovered.ids.get((node, 0))
    return ids.lid if ids and 0 < ids.lid <= MAX_LID else -1


def _names(discovered: Discovered) -> dict[str, str]:
    """Return the name of each node: the first of its forms that no other node has, else its id."""
    forms = {node: _forms(text) for node, text in discovered.descriptions.items()}
    times = Counter(form for of_node in forms.values() for form in {*of_node})
    return {
        node: next((form for form in of_node if times[form] == 1 and is_name(form)), node)
        for node, of_node in forms.items()
    }


def _forms(description: str) -> tuple[str, ...]:
    """Return what a node may be called: its description, its name in it, all of it as one word.

    Switches with a management processor are described as ``MF0;NAME:MODEL/UNIT``.
    """
    managed = _MANAGED.fullmatch(description)
    name, unit = (managed["name"], managed["unit"]) if managed else (description, "")
    word = _NOT_IN_NAMES.sub("-", f"{name}-{unit}" if unit else name).strip("-")
    return (description, _NOT_IN_NAMES.sub("-", name).strip("-"), word)
