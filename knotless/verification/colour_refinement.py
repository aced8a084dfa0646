"""Colours of switches: equal ones look alike from everywhere in the fabric.

Colour refinement: at first a switch has the number of its hosts as colour; then, again and again,
its colour and those of its neighbours, until no more switches differ. Switches that a symmetry of
the fabric exchanges have equal colours; the converse does not hold for all fabrics.

References
----------
Weisfeiler and Leman, The reduction of a graph to canonical form and the algebra which appears
therein, 1968.

"""

from __future__ import annotations

from collections import Counter

from knotless.routing.graphs.channels import Channels
from knotless.topologies.fabric import Fabric

Colour = tuple[str | int, ...]


def colours(fabric: Fabric, channels: Channels) -> list[int]:
    """Return the colour of each switch, a number from 0."""
    hosts = Counter(host.switch for host in fabric.hosts)
    colours_now = _numbers([(hosts[name],) for name in channels.names])
    ends = list(zip(channels.tail.tolist(), channels.head.tolist(), strict=True))
    while True:
        around: list[list[int]] = [[] for _ in colours_now]
        for tail, head in ends:
            around[tail].append(colours_now[head])
        finer = _numbers(
            [
                (own, *sorted(neighbours))
                for own, neighbours in zip(colours_now, around, strict=True)
            ]
        )
        if max(finer, default=0) == max(colours_now, default=0):
            return colours_now
        colours_now = finer


def _numbers(keys: list[tuple[int, ...]]) -> list[int]:
    order = {key: number for number, key in enumerate(sorted(set(keys)))}
    return [order[key] for key in keys]
