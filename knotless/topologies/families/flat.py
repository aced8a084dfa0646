"""A single switch with hosts."""

from __future__ import annotations

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, assemble


def build(request: Request) -> Fabric:
    """Return one switch with the given number of hosts."""
    (hosts,) = request.sizes
    if hosts < 1:
        raise SpecError(f"{request.name}: at least 1 host is needed, not {hosts}")
    return assemble(request, [hosts], [])


FAMILY = Family(
    name="flat",
    usage="flat,N",
    summary="one switch with N hosts",
    sizes=(1, 1),
    build=build,
    hosts=False,
)
