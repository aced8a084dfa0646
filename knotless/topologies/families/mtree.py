"""M-trees: a mesh reduced to a tree, as one VLAN of the switch-tagged method uses it."""

from __future__ import annotations

from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, build_grid


def build(request: Request) -> Fabric:
    """Return the tree VL(-,0) of the mesh X x Y: all y links, and the x links of row 0 only.

    References
    ----------
    Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging ('M-tree' in Table 1).

    """
    return build_grid(request, wrap=False, keep=lambda place, d: d == 1 or place[1] == 0)


FAMILY = Family(
    name="mtree",
    usage="mtree,X,Y",
    summary="mesh reduced to a tree: every column, and row 0",
    sizes=(2, 2),
    build=build,
)
