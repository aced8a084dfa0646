"""Layers: sets of turns without a cycle, in one of which each pair has a shortest path.

A layer is a largest set of turns that closes no cycle, so that a path fits into it
just when all its turns are legal there. The first layer also holds the turns of a spanning
tree, for broadcasts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from routing.channels import Channels, Ints
from routing.engine import Task
from routing.engines.minimal import breadth_first_trees
from routing.engines.updown import is_up, levels
from routing.turn_model import legal_turns
from routing.turns import Mask, Turns, all_turns, along_tree, grow_acyclic
from routing.walks import StateGraph, distances, graph_of, plain_graph


@dataclass(frozen=True)
class ShortestPaths:
    """All shortest paths of a fabric, as each turn and channel sees them.

    hops : (switches, switches) from [u] to [v].
    onward : (switches, channels) whether the channel is on a shortest path to the switch.
    wanted : (switches, switches) whether both have hosts, and are different.
    parent, level : the tree (see :func:`breadth_first_trees`) from the root.
    turns : those of shortest paths between wanted pairs, and those along the tree between
        switches with hosts.
    """

    channels: Channels
    hops: Ints
    onward: Mask
    wanted: Mask
    parent: Ints
    level: Ints
    turns: Turns


def shortest_paths(task: Task) -> ShortestPaths:
    """Work out the shortest paths between switches with hosts, and the tree from the root."""
    channels = task.channels
    hops = distances(plain_graph(channels))
    parent = breadth_first_trees(channels)[task.root]
    level = levels(channels, parent, task.root)
    has_host = np.zeros(len(hops), dtype=bool)
    has_host[task.host_switches] = True
    wanted = has_host[:, None] & has_host[None, :] & ~np.eye(len(hops), dtype=bool)
    onward = hops[:, channels.head] + 1 == hops[:, channels.tail]
    turns = all_turns(channels)
    paths = ShortestPaths(channels, hops, onward, wanted, parent, level, turns)
    needed = turn_use(paths, wanted) > 0
    needed |= along_tree(channels, _with_hosts_below(channels, parent, level, has_host), turns)
    return replace(paths, turns=turns.only(needed))


def _with_hosts_below(channels: Channels, parent: Ints, level: Ints, has_host: Mask) -> Ints:
    """Return the tree without the branches that have no host."""
    needed = has_host.copy()
    for switch in np.argsort(-level, kind="stable").tolist():
        if needed[switch] and parent[switch] >= 0:
            needed[channels.tail[parent[switch]]] = True
    return np.where(needed, parent, -1).astype(np.int32)


def make_layers(paths: ShortestPaths) -> list[Mask]:
    """Return layers (masks of turns) until every wanted pair fits into one.

    The first layer is what L-turn makes legal. Each further one takes turns in the order
    of how much the pairs that are left would use them, those legal for up*/down* first where
    that is equal; if more pairs fit into a first layer made so, it is taken instead.
    """
    channels, turns = paths.channels, paths.turns
    tree = along_tree(channels, paths.parent, turns)
    layers = [legal_turns(channels, paths.parent, turns)]
    fit = fitting(paths, layers[0])
    if (paths.wanted & ~fit).any():
        other = _by_use(paths, paths.wanted, tree)
        other_fit = fitting(paths, other)
        if (other_fit & paths.wanted).sum() > (fit & paths.wanted).sum():
            layers, fit = [other], other_fit
    left = paths.wanted & ~fit
    while left.any():
        layers.append(_by_use(paths, left, _one_path(paths, left)))
        left &= ~fitting(paths, layers[-1])
    return layers


def _by_use(paths: ShortestPaths, wanted: Mask, given: Mask) -> Mask:
    """Return the layer that takes the turns that wanted pairs use most first."""
    up = is_up(paths.channels, paths.level)
    illegal = ~up[paths.turns.before] & up[paths.turns.after]
    order = np.lexsort((illegal, -turn_use(paths, wanted))).astype(np.int32)
    return grow_acyclic(len(paths.channels), paths.turns, order, given)


def turn_use(paths: ShortestPaths, wanted: Mask) -> NDArray[np.float64]:
    """Return how many of the wanted pairs' shortest paths take each turn, equals sharing evenly.

    ``wanted`` (switches, switches) is true at [destination, source].
    """
    channels, turns = paths.channels, paths.turns
    use = np.zeros(len(turns))
    if not len(turns):
        return use
    tails, first = np.unique(channels.tail, return_index=True)
    ways = np.ones((len(paths.hops), len(paths.hops)))
    ways[:, tails] = np.maximum(1, np.add.reduceat(paths.onward, first, axis=1))
    share = paths.onward / ways[:, channels.tail]
    by_head = np.argsort(channels.head, kind="stable")
    heads, first_in = np.unique(channels.head[by_head], return_index=True)
    passing = wanted.astype(float)
    for hops in range(int(paths.hops.max()), 1, -1):
        here = np.where(paths.hops[:, channels.tail] == hops, passing[:, channels.tail] * share, 0)
        passing[:, heads] += np.add.reduceat(here[:, by_head], first_in, axis=1)
        use += np.einsum("dt,dt->t", here[:, turns.before], share[:, turns.after])
    return use.round(9)


def fitting(paths: ShortestPaths, layer: Mask) -> Mask:
    """Return (switches, switches) at [destination, source]: whether a shortest path fits."""
    channels, turns = paths.channels, paths.turns.only(layer)
    count = len(paths.hops)
    fit = np.eye(count, dtype=bool)
    arrives = paths.onward & (channels.head == np.arange(count)[:, None])
    if len(turns):
        before, first = np.unique(turns.before, return_index=True)
        while True:
            goes_on = np.logical_or.reduceat(arrives[:, turns.after], first, axis=1)
            more = goes_on & paths.onward[:, before] & ~arrives[:, before]
            if not more.any():
                break
            arrives[:, before] |= more
    if len(channels):
        tails, first = np.unique(channels.tail, return_index=True)
        fit[:, tails] |= np.logical_or.reduceat(arrives, first, axis=1)
    return fit


def _one_path(paths: ShortestPaths, wanted: Mask) -> Mask:
    """Return the turns of one shortest path of the first wanted pair: it will surely fit."""
    channels, turns = paths.channels, paths.turns
    destination, at = np.argwhere(wanted)[0].tolist()
    mask = np.zeros(len(turns), dtype=bool)
    before = -1
    while at != destination:
        after = int(np.nonzero((channels.tail == at) & paths.onward[destination])[0][0])
        if before >= 0:
            mask |= (turns.before == before) & (turns.after == after)
        before, at = after, int(channels.head[after])
    return mask


def layered_turn_graph(paths: ShortestPaths, layers: list[Mask]) -> StateGraph:
    """Return the states (layer, channel), then one for each start, and what is legal.

    A path chooses its layer with its first channel and keeps it.
    """
    channels = paths.channels
    count = len(channels)
    every = np.arange(count, dtype=np.int32)
    switches = np.arange(len(channels.names), dtype=np.int32)
    start = (len(layers) * count + switches).astype(np.int32)
    edges = []
    for number, layer in enumerate(layers):
        turns = paths.turns.only(layer)
        offset = np.int32(number * count)
        edges.append((turns.before + offset, turns.after + offset, turns.after))
        edges.append((start[channels.tail], every + offset, every))
    states = np.concatenate([*[channels.head] * len(layers), switches])
    return graph_of(channels, states, start, edges)
