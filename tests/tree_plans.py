"""Plans whose paths lie in given spanning trees, one tree a VLAN, as Otsuka et al. define them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from routing.channels import channels_of
from routing.engine import Routes
from routing.plan import Plan
from routing.vlan import FIRST_VLAN
from topologies.fabric import Fabric

Links = set[frozenset[str]]
"""Pairs of switches; the fabric must have no parallel links."""


def plan_by_trees(fabric: Fabric, trees: Sequence[Links], tree_of_host: Sequence[int]) -> Plan:
    """Every host sends along its tree, in the VLAN of that tree; one row a host."""
    channels = channels_of(fabric)
    count = len(fabric.switches)
    ways = [_ways(fabric, links) for links in trees]
    longest = max(len(way) for by_end in ways for way in by_end.values())
    hosts = len(fabric.hosts)
    paths = np.full((hosts, count, longest), -1, dtype=np.int32)
    broadcast = np.full((count, count), -1, dtype=np.int32)
    for h, host in enumerate(fabric.hosts):
        u = fabric.switch_index[host.switch]
        for v in range(count):
            way = ways[tree_of_host[h]].get((u, v), [])  # a switch without hosts may be out of it
            paths[h, v, : len(way)] = way
            if way:
                broadcast[u, v] = way[-1]
    vlans = FIRST_VLAN + np.array(tree_of_host, dtype=np.int32)
    routes = Routes(
        np.arange(hosts, dtype=np.int32),
        paths,
        np.zeros(paths.shape, dtype=np.uint8),
        broadcast,
        np.zeros(broadcast.shape, dtype=np.uint8),
    )
    pairs = np.repeat(vlans[:, None], count, axis=1)
    return Plan(fabric, "trees", "spread", channels, routes, "switch", pairs, 0.0)


def _ways(fabric: Fabric, links: Links) -> dict[tuple[int, int], list[int]]:
    """The channels from each switch to each other, in one tree."""
    channels = channels_of(fabric)
    names = channels.names
    leaving: list[list[int]] = [[] for _ in names]
    for c in range(len(channels)):
        tail, head = int(channels.tail[c]), int(channels.head[c])
        if frozenset((names[tail], names[head])) in links:
            leaving[tail].append(c)
    ways: dict[tuple[int, int], list[int]] = {}
    for start in range(len(names)):
        ways[start, start] = []
        reached = [start]
        for at in reached:
            for c in leaving[at]:
                head = int(channels.head[c])
                if (start, head) not in ways:
                    ways[start, head] = [*ways[start, at], c]
                    reached.append(head)
    return ways


def clos_trees(fabric: Fabric) -> list[Links]:
    """Tree i of two columns of n switches: all links of switch i and of switch n + i."""
    names = [switch.name for switch in fabric.switches]
    half = len(names) // 2
    every: Links = {frozenset((link.a, link.b)) for link in fabric.links}
    return [{link for link in every if link & {names[i], names[half + i]}} for i in range(half)]


def fat_tree_trees(fabric: Fabric, up: int, levels: int) -> list[Links]:
    """Tree t: each switch of level l goes up by its up-link number t // up**l % up."""
    index = fabric.switch_index
    level = {name: 0 if fabric.hosts_at[name] else -1 for name in index}
    for name in index:  # leaves before middle before top
        below = [far for far, _ in fabric.neighbours[name].values() if index[far] < index[name]]
        if below:
            level[name] = 1 + max(level[far] for far in below)
    trees: list[Links] = []
    for tree in range(up**levels):
        links: Links = set()
        for name in index:
            ups = [far for far, _ in fabric.neighbours[name].values() if level[far] > level[name]]
            if ups:
                links.add(frozenset((name, ups[tree // up ** level[name] % up])))
        trees.append(links)
    return trees
