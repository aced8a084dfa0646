"""Dragonfly+: groups of leaf and spine switches, and global links between the spines."""

from __future__ import annotations

from knotless.topologies.fabric import Fabric, FamilyMember
from knotless.topologies.family import Cable, Family, Point, Request, assemble, need_room
from knotless.topologies.math.palmtree import group_count, palmtree
from knotless.topologies.positions import groups_on_circle

LOCAL, GLOBAL = 0, 1


def build(request: Request) -> Fabric:
    """Return the Dragonfly+ of G groups of L leaf and S spine switches.

    In a group, each leaf is linked to each spine. A leaf has P hosts, a spine H global ports, which
    are numbered and linked as in a [dragonfly](#dragonfly). ``g=0`` stands for S H + 1 groups, the
    most. All leaves are numbered first, group by group, then all spines.

    Raises
    ------
    SpecError
        A parameter is below 1, or G is not 2 to S H + 1.

    References
    ----------
    Shpiner, Haramaty, Eliad, Zdornov, Gafni, Zahavi: Dragonfly+: low cost topology for scaling
    datacenters, HiPINEB 2017.

    """
    leaves, spines, h = (request.options[key] for key in ("l", "s", "h"))
    groups = group_count(request, spines * h, ("l", "s", "h"))
    links = groups * (leaves * spines + spines * h)
    need_room(request, groups * leaves, groups * spines, links)
    first = groups * leaves
    cables = [
        Cable(
            group * leaves + leaf,
            (LOCAL, spine),
            first + group * spines + spine,
            (LOCAL, leaf),
        )
        for group in range(groups)
        for leaf in range(leaves)
        for spine in range(spines)
    ]
    cables += [
        Cable(
            first + group * spines + m // h,
            (GLOBAL, m),
            first + peer * spines + n // h,
            (GLOBAL, n),
        )
        for group, m, peer, n in palmtree(groups, spines * h)
    ]
    hosts = [request.hosts] * first + [0] * (groups * spines)
    places = [(leaf % leaves, leaf // leaves) for leaf in range(first)]
    return assemble(request, hosts, cables, places=places)


def _positions(member: FamilyMember) -> list[Point]:
    leaves, spines, h, g = (member.options[key] for key in ("l", "s", "h", "g"))
    # Leaves stand on the outer half of each circle, spines on the inner one.
    groups = groups_on_circle(g or spines * h + 1, leaves + spines)
    outer = (leaves + 1) // 2
    by_group = [[*group[outer + spines :], *group[:outer]] for group in groups]
    return [
        *(place for group in by_group for place in group),
        *(place for group in groups for place in group[outer : outer + spines]),
    ]


FAMILY = Family(
    name="dragonflyplus",
    usage="dragonflyplus,l=L,s=S,h=H,p=P[,g=G]",
    summary="Dragonfly+: G groups of L leaves with P hosts and S spines with H global links",
    sizes=(0, 0),
    build=build,
    options={"l": 0, "s": 0, "h": 0, "g": 0},
    hosts_option="p",
    required=("l", "s", "h", "p"),
    positions=_positions,
)
