"""PolarFly: Erdos-Renyi polarity graphs, of diameter 2."""

from __future__ import annotations

from itertools import combinations

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric, FamilyMember
from knotless.topologies.family import Family, Point, Request, assemble, join, need_room
from knotless.topologies.math.field import field, prime_power
from knotless.topologies.numbering import MAX_HOSTS_PER_SWITCH
from knotless.topologies.positions import circle


def build(request: Request) -> Fabric:
    """Return the PolarFly of the prime power q: q^2 + q + 1 switches of degree q + 1.

    The switches are the points of the projective plane, vectors (x, y, z) over the field of q
    elements whose first coordinate other than 0 is 1, in ascending order. Two are linked if their
    dot product is 0. The q + 1 points that are orthogonal to themselves (absolute points, or
    quadrics) have no link for that, and so degree q. By default each switch has half as many hosts
    as links, rounded up.

    Raises
    ------
    SpecError
        q is not a power of a prime.

    References
    ----------
    Lakhotia, Besta, Monroe, Isham, Iff, Hoefler, Petrini: PolarFly: a cost-effective and flexible
    low-diameter topology, SC 2022. Erdos, Renyi: On a problem in the theory of graphs, 1962.

    """
    (q,) = request.sizes
    count = q * q + q + 1
    need_room(request, count, 0, q * (q + 1) ** 2 // 2)
    if prime_power(q) is None:
        raise SpecError(
            f"{request.name}: q must be a power of a prime (2, 3, 4, 5, 7, 8, 9, 11..), not {q}"
        )
    plus, times = field(q).plus, field(q).times
    points = [(0, 0, 1), *((0, 1, z) for z in range(q))]
    points += [(1, y, z) for y in range(q) for z in range(q)]
    cables = [
        join(i, j)
        for (i, (a, b, c)), (j, (d, e, f)) in combinations(enumerate(points), 2)
        if plus[plus[times[a][d]][times[b][e]]][times[c][f]] == 0
    ]
    return assemble(request, [request.hosts] * count, cables)


def _positions(member: FamilyMember) -> list[Point]:
    """Return a circle inside of another: points with first coordinate 0, then 1."""
    (q,) = member.sizes
    outer = circle(q * q)
    return [*circle(q + 1, least=0.45 * outer[0][1]), *outer]


FAMILY = Family(
    name="polarfly",
    usage="polarfly,Q",
    summary="PolarFly: Q^2 + Q + 1 switches at most 2 hops apart, Q a power of a prime",
    sizes=(1, 1),
    build=build,
    default_hosts=lambda sizes, _: min(MAX_HOSTS_PER_SWITCH, (sizes[0] + 2) // 2),
    positions=_positions,
)
