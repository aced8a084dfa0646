"""Rings: the smallest fabrics that can deadlock."""

from __future__ import annotations

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, build_grid


def build(request: Request) -> Fabric:
    """Return a ring, which is a torus of one dimension."""
    (size,) = request.sizes
    if size < 3:
        raise SpecError(f"{request.name}: a ring has at least 3 switches, not {size}")
    return build_grid(request, wrap=True)


FAMILY = Family(
    name="ring",
    usage="ring,N",
    summary="N switches in a ring",
    sizes=(1, 1),
    build=build,
)
