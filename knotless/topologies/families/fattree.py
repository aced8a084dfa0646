"""Fat-trees: by up-links, down-links and levels, and the common ones of two and three levels."""

from __future__ import annotations

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, assemble, join, need_room


def build(request: Request) -> Fabric:
    """Return the fat-tree (u, d, m): u up-links and d down-links per switch, m levels of up-links.

    Level 0 has d^m / u leaves; level j > 0 has d^(m-j) u^(j-1) switches. Each leaf has u hosts,
    so there are d^m hosts. Below the top, d groups of level j - 1 form a group of level j. In
    such a group, the switch at position p has up-links to positions p u .. p u + u - 1 of the
    larger group. The top connects d / u groups: a block of u switches in each group connects to
    the same u top switches, each to all.

    Raises
    ------
    SpecError
        The levels do not fit: u does not divide d.

    References
    ----------
    Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging, figure 3: (2, 4, 2) has 8
    leaves of 2 hosts, 4 middle and 2 top switches, and 24 links. The rule for other parameters is
    ours and agrees with the figure.

    """
    up, down, levels = request.sizes
    if down % up:
        raise SpecError(f"{request.name}: the up-links, {up}, must divide the down-links, {down}")
    if levels > 32:
        raise SpecError(f"{request.name}: {levels} levels are too many, at most 32 are possible")
    counts = [down**levels // up]
    counts += [down ** (levels - j) * up ** (j - 1) for j in range(1, levels + 1)]
    need_room(request, counts[0], sum(counts[1:]), up * sum(counts[:-1]))
    cables = []
    first = 0
    for level in range(levels):
        size = up**level  # switches in a group of this level
        top = level == levels - 1
        above = first + counts[level]
        for i in range(counts[level]):
            group, place = divmod(i, size)
            if top:
                begin = above + place // up * up
            else:
                begin = above + group // down * size * up + place * up
            cables += [join(first + i, begin + b % counts[level + 1]) for b in range(up)]
        first = above
    return assemble(request, [request.hosts] * counts[0] + [0] * sum(counts[1:]), cables)


def build_two_levels(request: Request) -> Fabric:
    """Return the two-level fat-tree: d leaves and d spines, each leaf linked to each spine."""
    (degree,) = request.sizes
    need_room(request, degree, degree, degree * degree)
    cables = [join(leaf, degree + spine) for leaf in range(degree) for spine in range(degree)]
    return assemble(request, [request.hosts] * degree + [0] * degree, cables)


def build_three_levels(request: Request) -> Fabric:
    """Return the three-level fat-tree of K-port switches, with K^3 / 4 hosts.

    There are K pods of K/2 leaves and K/2 middle switches. In a pod, each leaf is linked to each
    middle switch. The middle switch at position p of each pod is linked to the top switches
    p K/2 .. p K/2 + K/2 - 1. Numbering: leaves (pod by pod), middle switches, top switches.

    Raises
    ------
    SpecError
        K is odd.

    References
    ----------
    Al-Fares, Loukissas, Vahdat: A scalable, commodity data center network architecture, 2008.

    """
    (ports,) = request.sizes
    if ports % 2:
        raise SpecError(f"{request.name}: the number of ports must be even, not {ports}")
    half = ports // 2
    leaves = ports * half
    need_room(request, leaves, leaves + half * half, 2 * leaves * half)
    cables = []
    for pod in range(ports):
        for place in range(half):
            middle = leaves + pod * half + place
            cables += [join(pod * half + leaf, middle) for leaf in range(half)]
            cables += [join(middle, 2 * leaves + place * half + top) for top in range(half)]
    hosts = [request.hosts] * leaves + [0] * (leaves + half * half)
    places = [(leaf % half, leaf // half) for leaf in range(leaves)]
    return assemble(request, hosts, cables, places=places)


FATTREE = Family(
    name="fattree",
    usage="fattree,U,D,M",
    summary="tree of switches with U up-links and D down-links, M levels of up-links",
    sizes=(3, 3),
    build=build,
    default_hosts=lambda sizes, _: sizes[0],
)
TWO_LEVELS = Family(
    name="fattree2",
    usage="fattree2,D",
    summary="two levels: D leaves of D hosts, D spines",
    sizes=(1, 1),
    build=build_two_levels,
    default_hosts=lambda sizes, _: sizes[0],
)
THREE_LEVELS = Family(
    name="fattree3",
    usage="fattree3,K",
    summary="three levels of K-port switches, K^3/4 hosts",
    sizes=(1, 1),
    build=build_three_levels,
    default_hosts=lambda sizes, _: max(1, sizes[0] // 2),
)
