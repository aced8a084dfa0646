"""Dragonflies: fully connected groups, and global links between all groups."""

from __future__ import annotations

from knotless.topologies.fabric import Fabric, FamilyMember
from knotless.topologies.family import Cable, Family, Point, Request, assemble, need_room
from knotless.topologies.math.palmtree import group_count, palmtree
from knotless.topologies.positions import groups_on_circle

LOCAL, GLOBAL = 0, 1


def build(request: Request) -> Fabric:
    """Return the dragonfly of G groups of A switches, each with P hosts and H global ports.

    The switches of a group are linked to each other. The A H global ports of a group are numbered
    switch by switch. Port m of group i leads to group i + m + 1 (modulo G), the palmtree
    arrangement. With fewer groups than A H + 1, the numbers go round several times. Ports that
    remain join groups at the distances 1, -1, 2, -2 and so on, so that the numbers of links
    between two groups differ by one at most. ``g=0`` stands for A H + 1 groups, the most. At each
    switch, ports to hosts come first, then those to the group, then the global ones.

    Raises
    ------
    SpecError
        A parameter is below 1, or G is not 2 to A H + 1.

    References
    ----------
    Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, ISCA 2008.
    Camarero, Vallejo, Beivide: Topological characterization of Hamming and dragonfly networks and
    its implications on routing, ACM TACO 2014, for the palmtree arrangement.

    """
    a, h = request.options["a"], request.options["h"]
    groups = group_count(request, a * h, ("a", "h"))
    need_room(request, groups * a, 0, groups * (a * (a - 1) + a * h) // 2)
    cables = [
        Cable(group * a + low, (LOCAL, high), group * a + high, (LOCAL, low))
        for group in range(groups)
        for low in range(a)
        for high in range(low + 1, a)
    ]
    cables += [
        Cable(group * a + m // h, (GLOBAL, m), peer * a + n // h, (GLOBAL, n))
        for group, m, peer, n in palmtree(groups, a * h)
    ]
    places = [(i % a, i // a) for i in range(groups * a)]
    return assemble(request, [request.hosts] * (groups * a), cables, places=places)


def _positions(member: FamilyMember) -> list[Point]:
    a, h, g = (member.options[key] for key in ("a", "h", "g"))
    return [place for group in groups_on_circle(g or a * h + 1, a) for place in group]


FAMILY = Family(
    name="dragonfly",
    usage="dragonfly,a=A,h=H,p=P[,g=G]",
    summary="G groups of A linked switches, each with H global links and P hosts",
    sizes=(0, 0),
    build=build,
    options={"a": 0, "h": 0, "g": 0},
    hosts_option="p",
    required=("a", "h", "p"),
    positions=_positions,
)
