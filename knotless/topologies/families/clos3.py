"""Three-level Clos networks of switches with a given number of ports, and over-subscription."""

from __future__ import annotations

from collections.abc import Mapping

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, assemble, join, need_room


def build(request: Request) -> Fabric:
    """Return the three-level Clos network of R-port switches (folded: a leaf has both ends).

    A leaf has N times as many ports to hosts as up-links, with ``over=N``: it is over-subscribed
    N to 1. A pod has R/2 leaves, and an aggregation switch for each up-link of a leaf, which has
    R/2 ports down and R/2 up. Aggregation switch p of each pod is linked to the R/2 core switches
    p R/2 .. p R/2 + R/2 - 1, each of which has a port for each pod. There are R pods, or fewer with
    ``pods``; then ports of the core stay free. ``over=1`` with all pods is a fat-tree of three
    levels. Numbering: leaves pod by pod, aggregation switches likewise, core switches.

    Raises
    ------
    SpecError
        R is odd or not divisible by N + 1, or there are more than R pods, or a single one.

    References
    ----------
    Clos: A study of non-blocking switching networks, 1953. Al-Fares, Loukissas, Vahdat: A scalable,
    commodity data center network architecture, SIGCOMM 2008. Greenberg et al.: VL2: a scalable and
    flexible data center network, SIGCOMM 2009.

    """
    (radix,) = request.sizes
    over, pods = request.options["over"], request.options["pods"] or radix
    if over < 1 or radix % (over + 1) or radix % 2:
        raise SpecError(
            f"{request.name}: the radix must be even and a multiple of over + 1;"
            f" {radix} is not with over={over}"
        )
    if not 2 <= pods <= radix:
        raise SpecError(f"{request.name}: pods must be 2 to the radix, {radix}, not {pods}")
    half, ups = radix // 2, radix // (over + 1)
    leaves, middle = pods * half, pods * ups
    need_room(request, leaves, middle + ups * half, (leaves + pods * half) * ups)
    cables = []
    for pod in range(pods):
        for p in range(ups):
            aggregation = leaves + pod * ups + p
            cables += [join(pod * half + leaf, aggregation) for leaf in range(half)]
            first = leaves + middle + p * half
            cables += [join(aggregation, first + core) for core in range(half)]
    hosts = [request.hosts] * leaves + [0] * (middle + ups * half)
    places = [(leaf % half, leaf // half) for leaf in range(leaves)]
    return assemble(request, hosts, cables, places=places)


def _hosts(sizes: tuple[int, ...], options: Mapping[str, int]) -> int:
    over = max(1, options["over"])
    return max(1, sizes[0] * over // (over + 1))


FAMILY = Family(
    name="clos3",
    usage="clos3,R",
    summary="three-level Clos network of R-port switches, over-subscribed over:1",
    sizes=(1, 1),
    build=build,
    options={"over": 1, "pods": 0},
    default_hosts=_hosts,
)
