"""Meshes, tori and grids with missing links: switches at integer coordinates, x fastest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric, Grid
from knotless.topologies.family import Cable, Request, assemble, need_switches

Keep = Callable[[tuple[int, ...], int], bool]
"""Whether a coordinate has the cable in the positive direction of a dimension."""

POSITIVE, NEGATIVE = 0, 1


def build_grid(request: Request, wrap: bool, keep: Keep | None = None) -> Fabric:
    """Return the mesh (or torus, with ``wrap``) of ``request.sizes``.

    In a dimension of size 2 one link connects the two switches, also in a torus, as in the
    4x2 torus with 12 links of Otsuka et al. A dimension of size 1 has no links.

    Raises
    ------
    SpecError
        A size below 1, or too many switches.

    """
    dims = request.sizes
    if min(dims) < 1:
        raise SpecError(f"{request.name}: a size must be at least 1, not {min(dims)}")
    need_switches(request.name, prod(dims))
    strides = [prod(dims[:d]) for d in range(len(dims))]
    cables = []
    places = []
    for backwards in product(*(range(size) for size in reversed(dims))):
        place = backwards[::-1]
        places.append(place)
        here = sum(x * stride for x, stride in zip(place, strides, strict=True))
        for d, size in enumerate(dims):
            wraps = place[d] == size - 1
            if wraps and not (wrap and size > 2):
                continue
            if keep is not None and not keep(place, d):
                continue
            there = here + (strides[d] if not wraps else -(size - 1) * strides[d])
            cables.append(Cable(here, (d, POSITIVE), there, (d, NEGATIVE)))
    grid = Grid(dims, wrap) if keep is None else None
    return assemble(request, [request.hosts] * prod(dims), cables, grid, places)
