"""Meshes of any number of dimensions."""

from __future__ import annotations

from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, build_grid


def build(request: Request) -> Fabric:
    """Return a mesh: links connect switches that are one step apart in one dimension."""
    return build_grid(request, wrap=False)


FAMILY = Family(
    name="mesh",
    usage="mesh,X,Y[,Z..]",
    summary="grid of switches in any number of dimensions",
    sizes=(1, 16),
    build=build,
)
