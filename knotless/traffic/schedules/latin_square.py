"""The wiring of a Latin-square fat-tree, for schedules: where each port leads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from knotless.routing.graphs.channels import Ints
from knotless.topologies.fabric import Fabric
from knotless.topologies.math.plane import lines


@dataclass(frozen=True)
class LatinSquare:
    """The wiring of an LSFT. Positions (of ports, and of hosts on a leaf) count from 0.

    order, sides, hosts : the order, 1 or 2 sides, the hosts on each leaf.
    points : (lines, order + 1) the points on each line, ascending: a spine's ports in order.
    lines : (points, order + 1) the lines through each point: a leaf's up-links in order.
    at_line : (points, order + 1) the position of the point among the points of that line.
    at_point : (lines, order + 1) the position of the line among the lines of that point.
    """

    order: int
    sides: int
    hosts: int
    points: Ints
    lines: Ints
    at_line: Ints
    at_point: Ints

    @property
    def leaves(self) -> int:
        """The number of leaves, on all sides."""
        return self.sides * len(self.lines)


def latin_square_of(fabric: Fabric) -> LatinSquare | None:
    """Return the wiring of ``fabric`` if it is an LSFT with our port numbers, else None."""
    family = fabric.family
    if family is None or family.name != "lsft":
        return None
    return latin_square(family.sizes[0], family.options["sides"], family.hosts)


def latin_square(order: int, sides: int, hosts: int) -> LatinSquare:
    """Return the wiring of an LSFT; the order must be a prime power."""
    points = np.array(lines(order), dtype=np.int32)
    through: list[list[int]] = [[] for _ in points]
    at_line: list[list[int]] = [[] for _ in points]
    at_point = np.zeros_like(points)
    for line, on_it in enumerate(points.tolist()):
        for place, point in enumerate(on_it):
            at_point[line, place] = len(through[point])
            through[point].append(line)
            at_line[point].append(place)
    return LatinSquare(
        order,
        sides,
        hosts,
        points,
        np.array(through, dtype=np.int32),
        np.array(at_line, dtype=np.int32),
        at_point,
    )
