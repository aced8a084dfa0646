"""Myrinet-Clos networks: two columns of switches, fully connected, with hosts on all of them."""

from __future__ import annotations

from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, assemble, join, need_room


def build(request: Request) -> Fabric:
    """Return the n x n Myrinet-Clos: switch i < n has a link to each switch n .. 2n - 1.

    References
    ----------
    Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging, figure 3.

    """
    (size,) = request.sizes
    need_room(request, 2 * size, 0, size * size)
    cables = [join(i, size + j) for i in range(size) for j in range(size)]
    return assemble(request, [request.hosts] * (2 * size), cables)


FAMILY = Family(
    name="clos",
    usage="clos,N",
    summary="Myrinet-Clos N x N: two columns of N switches, hosts on all",
    sizes=(1, 1),
    build=build,
)
