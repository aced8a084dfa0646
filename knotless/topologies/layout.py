"""Positions of the switches of a fabric in a picture."""

from __future__ import annotations

import math
from collections import Counter

from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Point
from knotless.topologies.registry import families

WIDEST = 24
_STEP, _STAGGERED_STEP = 1.5, 1.05
"""Distances of switches in a layer, in one row or in two."""
HOST_AWAY = 0.72
"""Distance of a host from its switch."""


def place_switches(fabric: Fabric) -> dict[str, Point]:
    """Return where to draw each switch, neighbours about 1.5 apart.

    Families with positions of their own as they say. Grids by their coordinates (a third dimension
    and more side by side), single rings on a circle, everything else in layers: by the hops from
    the switches that have hosts, those at the bottom, or where all have hosts from the first
    switch, at the top. Switches with few hosts count as if they had none, if no link then connects
    two of a layer: a spine may have a host, for management. Wide layers stand further apart, and
    more than :data:`WIDEST` switches in a layer in two rows; where all switches have hosts, they
    fill a disc instead.

    Parameters
    ----------
    fabric : Fabric
        The fabric to draw.

    Returns
    -------
    dict of str to (float, float)
        The place of each switch, x to the right and y upwards.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> place_switches(load("mesh,2,2"))["s4"]
    (1.8, -1.8)

    """
    names = [switch.name for switch in fabric.switches]
    if fabric.family is not None and (place := families()[fabric.family.name].positions):
        return dict(zip(names, place(fabric.family), strict=True))
    if fabric.grid is not None and len([d for d in fabric.grid.dims if d > 1]) > 1:
        return _on_grid(names, fabric.grid.dims)
    degrees = {len(ports) for ports in fabric.neighbours.values()}
    if len(names) > 2 and degrees == {2}:
        radius = max(1.2, 1.5 * len(names) / (2 * math.pi))
        turns = [math.pi / 2 - 2 * math.pi * (i - 0.5) / len(names) for i in range(len(names))]
        return {
            name: (radius * math.cos(turn), radius * math.sin(turn))
            for name, turn in zip(names, turns, strict=True)
        }
    return _in_layers(fabric)


def fan(count: int) -> list[Point]:
    """Return where to draw ``count`` hosts of a switch, from its centre.

    Below and to the right; more than eight stand around the switch.
    """
    if count > 8:
        angles = [360 * place / count for place in range(count)]
    else:
        angles = [-45 + 26 * (place - (count - 1) / 2) for place in range(count)]
    turns = [math.radians(angle) for angle in angles]
    return [(HOST_AWAY * math.cos(turn), HOST_AWAY * math.sin(turn)) for turn in turns]


def _on_grid(names: list[str], dims: tuple[int, ...]) -> dict[str, Point]:
    places = {}
    columns, rows = dims[0], dims[1]
    for i, name in enumerate(names):
        x, y, plane = i % columns, i // columns % rows, i // (columns * rows)
        places[name] = (1.8 * x + plane * 1.8 * (columns + 0.8), -1.8 * y)
    return places


def _in_layers(fabric: Fabric) -> dict[str, Point]:
    count = {switch.name: len(fabric.hosts_at[switch.name]) for switch in fabric.switches}
    leaves = [name for name in count if count[name]]
    below = len(leaves) < len(fabric.switches)
    level = _levels(fabric, leaves if below else [fabric.switches[0].name])
    many = [name for name in count if 2 * count[name] >= max(count.values())]
    tiers = _levels(fabric, many)
    if len(many) < len(leaves) and not any(
        tiers.get(link.a) == tiers.get(link.b) for link in fabric.links
    ):
        level, below = tiers, True
    queue = [*level]
    # What is cut off, as in a dump of a part of a fabric, stands at the bottom.
    cut_off = [name for name in fabric.switch_index if name not in level]
    level |= dict.fromkeys(cut_off, 0)
    queue += cut_off
    queue.sort(key=fabric.switch_index.__getitem__)
    widths = Counter(level.values())
    widest = max(widths.values())
    if widest > WIDEST and not below:
        return _on_disc(queue)
    apart = max(2.4 if below else 1.8, 0.6 * widest / len(widths))
    seen: Counter[int] = Counter()
    places = {}
    for name in queue:
        layer = level[name]
        in_two_rows = widths[layer] > WIDEST
        step = _STAGGERED_STEP if in_two_rows else _STEP
        if widest > WIDEST:  # narrower layers are as wide
            step = max(step, min(3 * _STEP, _STAGGERED_STEP * widest / widths[layer]))
        places[name] = (
            step * (seen[layer] - (widths[layer] - 1) / 2),
            (apart if below else -apart) * layer - in_two_rows * (seen[layer] % 2),
        )
        seen[layer] += 1
    return places


def _levels(fabric: Fabric, first: list[str]) -> dict[str, int]:
    """Return the number of hops from the nearest of the ``first`` switches, by switch."""
    level = dict.fromkeys(first, 0)
    for name in (queue := [*first]):
        for neighbour, _ in fabric.neighbours[name].values():
            if neighbour not in level:
                level[neighbour] = level[name] + 1
                queue.append(neighbour)
    return level


def _on_disc(names: list[str]) -> dict[str, Point]:
    """Place switches evenly on a disc, in their order from its centre, as seeds in a sunflower."""
    golden = math.pi * (3 - math.sqrt(5))
    return {
        name: (
            math.sqrt(i + 0.5) * math.cos(i * golden),
            math.sqrt(i + 0.5) * math.sin(i * golden),
        )
        for i, name in enumerate(names)
    }
