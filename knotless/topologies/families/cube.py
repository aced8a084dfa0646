"""Tori of cubes joined by optical circuit switches, as pods of TPU v4; also twisted tori."""

from __future__ import annotations

from itertools import product
from math import prod

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric, FamilyMember, Grid
from knotless.topologies.family import (
    Cable,
    Family,
    Point,
    Request,
    assemble,
    need_room,
)
from knotless.topologies.positions import in_planes

BLOCK = 4
"""Chips along an edge of a cube; within it links are copper, between cubes optical."""
POSITIVE, NEGATIVE = 0, 1


def build(request: Request) -> Fabric:
    """Return the 3-D torus of cubes of 4x4x4 switches, each with one host by default.

    Each switch is a chip with its router. Optical switches join the cubes; they hold circuits, so
    they are not switches of the fabric, and a link through one is a link. Without ``twist`` this is
    a torus whose sizes are multiples of 4. ``twist`` shifts wrap-around links, for two shapes, with
    sizes in ascending order. K x K x 2K: the wrap-around of x and of y also goes K steps in z.
    K x 2K x 2K: that of x also goes K steps in y and K in z.

    Raises
    ------
    SpecError
        A size is no multiple of 4, or there is no twist of this shape.

    References
    ----------
    Jouppi et al.: TPU v4: an optically reconfigurable supercomputer for machine learning with
    hardware support for embeddings, ISCA 2023. Camara, Moreto, Vallejo, Beivide, Miguel-Alonso,
    Martinez, Navaridas: Twisted torus topologies for enhanced interconnection networks, IEEE TPDS
    2010, for the twist; its shifts are in ours the longer dimensions.

    """
    dims = request.sizes
    if any(size % BLOCK for size in dims):
        raise SpecError(f"{request.name}: sizes must be multiples of {BLOCK}, as {BLOCK}x4x8")
    need_room(request, prod(dims), 0, 3 * prod(dims))
    twisted = request.options["twist"]
    if twisted not in (0, 1):
        raise SpecError(f"{request.name}: write twist, or not, instead of twist={twisted}")
    shifts = shifts_of(dims, bool(twisted))
    if shifts is None:
        raise SpecError(f"{request.name}: a twisted shape is KxKx2K or Kx2Kx2K, as 4x4x8 or 4x8x8")
    places = [place[::-1] for place in product(*(range(size) for size in reversed(dims)))]
    cables = [
        Cable(here, (d, POSITIVE), neighbour(dims, shifts, place, d), (d, NEGATIVE))
        for here, place in enumerate(places)
        for d in range(3)
    ]
    grid = None if twisted else Grid(dims, wrap=True)
    return assemble(request, [request.hosts] * prod(dims), cables, grid, places)


Shifts = tuple[tuple[int, int, int], ...]


def shifts_of(dims: tuple[int, ...], twisted: bool) -> Shifts | None:
    """Return what the wrap-around of each dimension adds to the coordinates, or None."""
    if not twisted:
        return ((0, 0, 0),) * 3
    x, y, z = dims
    if x == y and z == 2 * x:
        return (0, 0, x), (0, 0, x), (0, 0, 0)
    if y == z == 2 * x:
        return (0, x, x), (0, 0, 0), (0, 0, 0)
    return None


def neighbour(dims: tuple[int, ...], shifts: Shifts, place: tuple[int, ...], d: int) -> int:
    """Return the number of the switch one step from ``place`` in the positive direction of d."""
    moved = [*place]
    moved[d] += 1
    if moved[d] == dims[d]:
        moved = [m + s for m, s in zip(moved, shifts[d], strict=True)]
    x, y, z = (m % size for m, size in zip(moved, dims, strict=True))
    return x + dims[0] * (y + dims[1] * z)


def _positions(member: FamilyMember) -> list[Point]:
    """Return planes beside each other, sheared, so that links in one line stay visible."""
    columns, rows, planes = member.sizes
    plane = [(1.8 * x + 0.25 * y, -1.8 * y + 0.25 * x) for y in range(rows) for x in range(columns)]
    return in_planes(plane, planes, 1.8 * (columns + 1), 1.8 * (rows + 1))


FAMILY = Family(
    name="cube",
    usage="cube,XxYxZ[,twist]",
    summary="torus of 4x4x4 cubes joined by optical switches (TPU v4), also twisted",
    sizes=(3, 3),
    build=build,
    options={"twist": 0},
    flags=("twist",),
    shape="",
    positions=_positions,
)
