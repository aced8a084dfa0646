"""Tori of any number of dimensions."""

from __future__ import annotations

from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, build_grid


def build(request: Request) -> Fabric:
    """Return a torus: a mesh in which a link connects both ends of each row."""
    return build_grid(request, wrap=True)


FAMILY = Family(
    name="torus",
    usage="torus,X,Y[,Z..]",
    summary="mesh with wrap-around links in every dimension longer than 2",
    sizes=(1, 16),
    build=build,
)
