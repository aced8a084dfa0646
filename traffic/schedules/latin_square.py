"""What a Latin-square fat-tree is to a schedule: which port of which switch leads where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.default_engine import family_of
from routing.graphs.channels import Ints
from topologies.fabric import Fabric
from topologies.math.plane import lines


@dataclass(frozen=True)
class LatinSquare:
    """The wiring of an LSFT. Places (of ports, and of hosts on a leaf) count from 0.

    order, sides, hosts : the order, 1 or 2 sides, the hosts on each leaf.
    points : (lines, order + 1) the points on each line, ascending: a spine's ports in order.
    lines : (points, order + 1) the lines through each point: a leaf's up-links in order.
    at_line : (points, order + 1) the place of the point among those of that line.
    at_point : (lines, order + 1) the place of the line among those of that point.
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
        """How many leaves there are, on all sides."""
        return self.sides * len(self.lines)


def latin_square_of(fabric: Fabric) -> LatinSquare | None:
    """Return the wiring of ``fabric`` when it is an LSFT as we build them, else None."""
    found = family_of(fabric)
    if found is None or found[0].name != "lsft":
        return None
    request = found[1]
    return latin_square(request.sizes[0], request.options["sides"], request.hosts)


def latin_square(order: int, sides: int, hosts: int) -> LatinSquare:
    """Return the wiring of an LSFT; the order must be a power of a prime."""
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
