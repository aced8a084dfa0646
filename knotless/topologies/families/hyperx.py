"""HyperX and full meshes: all switches that differ in one coordinate are linked."""

from __future__ import annotations

from itertools import product
from math import prod

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric, FamilyMember
from knotless.topologies.family import Cable, Family, Point, Request, assemble, need_room
from knotless.topologies.positions import bent_grid, circle


def build(request: Request) -> Fabric:
    """Return the HyperX of the sizes S: each two switches that differ in one coordinate are linked.

    Switches are numbered by their coordinates, the first fastest. K is the number of parallel
    links, for each dimension (``K=2x1x1``) or the same for all (``K=2``). With two sizes and K=1,
    this is a flattened butterfly; with all sizes 2, a hypercube. At each switch, ports to hosts
    come first, then those of each dimension, by the coordinate of the neighbour.

    Raises
    ------
    SpecError
        A size is below 2, or the links are too many.

    References
    ----------
    Ahn, Binkert, Davis, McLaren, Schreiber: HyperX: topology, routing, and packaging of efficient
    large-scale networks, SC 2009.

    """
    return _linked(request)


def build_full_mesh(request: Request) -> Fabric:
    """Return the full mesh: N switches, each linked to each other by K links.

    It is the HyperX of one dimension.
    """
    return _linked(request)


def _linked(request: Request) -> Fabric:
    dims, parallel = request.sizes, request.lists["K"]
    if min(dims) < 2:
        raise SpecError(f"{request.name}: a size must be at least 2, not {min(dims)}")
    count = prod(dims)
    degree = sum((size - 1) * k for size, k in zip(dims, parallel, strict=True))
    need_room(request, count, 0, count * degree // 2)
    strides = [prod(dims[:d]) for d in range(len(dims))]
    places = [place[::-1] for place in product(*(range(size) for size in reversed(dims)))]
    cables = [
        Cable(
            here,
            (d, far, k),
            here + (far - place[d]) * strides[d],
            (d, place[d], k),
        )
        for here, place in enumerate(places)
        for d, size in enumerate(dims)
        for far in range(place[d] + 1, size)
        for k in range(parallel[d])
    ]
    return assemble(request, [request.hosts] * count, cables, places=places)


def _positions(member: FamilyMember) -> list[Point]:
    dims = member.sizes
    return circle(dims[0]) if len(dims) == 1 else bent_grid(dims)


HYPERX = Family(
    name="hyperx",
    usage="hyperx,S=SxS[xS..][,K=K]",
    summary="HyperX: switches that differ in one coordinate are linked, by K links",
    sizes=(1, 16),
    build=build,
    lists=("K",),
    shape="S",
    positions=_positions,
)
FULL_MESH = Family(
    name="fullmesh",
    usage="fullmesh,N[,K=K]",
    summary="N switches, all linked to each other, by K links",
    sizes=(1, 1),
    build=build_full_mesh,
    lists=("K",),
    positions=_positions,
)
