"""Rail-optimized fabrics of GPU servers: NIC r of each server is on a leaf of rail r."""

from __future__ import annotations

from dataclasses import replace

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Cable, Family, Request, assemble, need_room
from knotless.topologies.numbering import MAX_HOSTS_PER_SWITCH


def build(request: Request) -> Fabric:
    """Return the rail-optimized fabric of servers with a NIC (a host) on each rail.

    The leaves of a rail have ``unit`` servers each, the servers of a scalable unit. Each leaf is
    linked to each spine, by ``links`` cables. The leaves are numbered unit by unit, a rail after
    the other, then the spines. Leaf u R + r (from 0, with R rails) has NIC r of the servers
    of unit u, in their order. The hosts of a server have its name, ``server1`` ..: see
    [fabric files](../fabric-files.md).

    Raises
    ------
    SpecError
        ``unit`` is not 1 to 254, or ``links`` is below 1.

    References
    ----------
    Wang, Ghobadi, Shakeri, Zhang, Hasani: Rail-only: a low-cost high-performance network for
    training LLMs with trillion parameters, HOTI 2024, section 2, describes rail-optimized fabrics.

    """
    servers, rails, spines = request.sizes
    unit, links = request.options["unit"], request.options["links"]
    if not 1 <= unit <= MAX_HOSTS_PER_SWITCH:
        raise SpecError(f"{request.name}: unit must be 1 to {MAX_HOSTS_PER_SWITCH}, not {unit}")
    if links < 1:
        raise SpecError(f"{request.name}: links must be at least 1, not {links}")
    units = -(-servers // unit)
    leaves = units * rails
    need_room(replace(request, hosts=min(unit, servers)), leaves, spines, leaves * spines * links)
    cables = [
        Cable(leaf, (spine, k), leaves + spine, (leaf, k))
        for leaf in range(leaves)
        for spine in range(spines)
        for k in range(links)
    ]
    hosts = [min(unit, servers - leaf // rails * unit) for leaf in range(leaves)] + [0] * spines
    places = [(leaf % rails, leaf // rails) for leaf in range(leaves)]
    fabric = assemble(request, hosts, cables, places=places)
    index = fabric.switch_index
    return replace(
        fabric,
        hosts=tuple(
            replace(host, server=f"server{index[host.switch] // rails * unit + host.port}")
            for host in fabric.hosts
        ),
    )


FAMILY = Family(
    name="rail",
    usage="rail,SERVERS,RAILS,SPINES",
    summary="rail-optimized: NIC r of each server is on a leaf of rail r",
    sizes=(3, 3),
    build=build,
    hosts=False,
    options={"unit": 32, "links": 1},
)
