"""Positions in drawings that several families share. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from knotless.topologies.family import Point

STEP = 1.5
"""Distance of neighbours in a drawing."""
_BETWEEN_GROUPS = 1.8


def circle(count: int, *, least: float = 1.2, turn: float = 0.25) -> list[Point]:
    """Return ``count`` places on a circle, clockwise; ``turn`` is where the first is, in turns.

    Examples
    --------
    >>> [(round(x, 1), round(y, 1)) for x, y in circle(4, least=2)]
    [(0.0, 2.0), (2.0, 0.0), (0.0, -2.0), (-2.0, -0.0)]

    """
    radius = max(least, STEP * count / (2 * math.pi))
    angles = [2 * math.pi * (turn - i / count) for i in range(count)]
    return [(radius * math.cos(angle), radius * math.sin(angle)) for angle in angles]


def groups_on_circle(groups: int, members: int) -> list[list[Point]]:
    """Return the places of the members of each group: small circles on a large one."""
    inner = max(0.8, STEP * members / (2 * math.pi)) if members > 1 else 0.0
    apart = 2 * inner + _BETWEEN_GROUPS
    outer = apart / (2 * math.sin(math.pi / groups)) if groups > 1 else 0.0
    centres = circle(groups, least=outer)
    return [
        [
            (x + dx, y + dy)
            # The first member is the one farthest from the centre of the drawing.
            for dx, dy in circle(members, least=inner, turn=0.25 - group / groups)
        ]
        for group, (x, y) in enumerate(centres)
    ]


def bent_grid(dims: Sequence[int]) -> list[Point]:
    """Return the places of a grid whose rows and columns are arcs.

    On arcs, links between switches that are not neighbours in a row do not hide each other. The
    planes of a third dimension and more stand beside and below each other.
    """
    columns, rows = dims[0], dims[1] if len(dims) > 1 else 1
    bent = []
    for y in range(rows):
        for x in range(columns):
            middle_x = (x - (columns - 1) / 2) / max(1, columns - 1)
            middle_y = (y - (rows - 1) / 2) / max(1, rows - 1)
            bent.append((2 * x + 0.7 * rows * middle_y**2, -2 * y + 0.7 * columns * middle_x**2))
    return in_planes(bent, math.prod(dims[2:]), 2 * columns + 1.0, 2 * rows + 1.0)


def in_planes(plane: Sequence[Point], planes: int, width: float, height: float) -> list[Point]:
    """Return the places of equal planes, in rows and columns of about the same number."""
    across = math.ceil(math.sqrt(planes))
    return [
        (x + i % across * width, y - i // across * height) for i in range(planes) for x, y in plane
    ]
