"""Slim Fly: McKay-Miller-Siran graphs, of diameter 2."""

from __future__ import annotations

from collections.abc import Mapping

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric, FamilyMember
from knotless.topologies.family import Cable, Family, Point, Request, assemble, need_room
from knotless.topologies.math.field import field, powers, prime_power
from knotless.topologies.numbering import MAX_HOSTS_PER_SWITCH
from knotless.topologies.positions import groups_on_circle

SAME, OTHER = 0, 1


def build(request: Request) -> Fabric:
    """Return the Slim Fly of the prime power q = 4 w + d: 2 q^2 switches of degree (3 q - d) / 2.

    A switch is (part, x, y) with part 0 or 1 and x, y in the field of q elements; its number is
    part q^2 + x q + y. In part 0, (0, x, y) and (0, x, z) are linked if y - z is in X; in part 1,
    (1, m, c) and (1, m, e) if c - e is in X'. Between the parts, (0, x, y) and (1, m, c) are
    linked if y = m x + c. With a primitive element r: if d is 1 or 0, X are the even powers of r
    and X' the odd ones (q / 2 each if q is even); if d is -1, X are r^0, r^2 .. r^(2w-2), r^(2w-1),
    r^(2w+1) .. r^(4w-3), and X' is r X. By default each switch has half as many hosts as links,
    rounded up.

    Raises
    ------
    SpecError
        q is not a power of a prime, or 2.

    References
    ----------
    Besta, Hoefler: Slim Fly: a cost effective low-diameter network topology, SC 2014. Hafner:
    Geometric realisation of the graphs of McKay-Miller-Siran, 2004.

    """
    (q,) = request.sizes
    need_room(request, 2 * q * q, 0, q * q * degree(q))
    if q < 3 or prime_power(q) is None:
        raise SpecError(
            f"{request.name}: q must be a power of a prime from 3 (3, 4, 5, 7, 8, 9, 11..), not {q}"
        )
    gf = field(q)
    cables = []
    for part, generators in enumerate(generator_sets(q)):
        differences = set(generators)
        cables += [
            Cable(first + y, (SAME, first + z), first + z, (SAME, first + y))
            for first in range(part * q * q, (part + 1) * q * q, q)
            for y in range(q)
            for z in range(y + 1, q)
            if gf.plus[y][gf.negative[z]] in differences
        ]
    for x in range(q):
        for m in range(q):
            for c in range(q):
                a = x * q + gf.plus[gf.times[m][x]][c]
                b = q * q + m * q + c
                cables.append(Cable(a, (OTHER, b), b, (OTHER, a)))
    places = [(i % q, i // q % q, i // (q * q)) for i in range(2 * q * q)]
    return assemble(request, [request.hosts] * (2 * q * q), cables, places=places)


def degree(q: int) -> int:
    """Return the number of links of each switch, (3 q - d) / 2 with q = 4 w + d."""
    return (3 * q - {0: 0, 1: 1, 2: 0, 3: -1}[q % 4]) // 2


def generator_sets(q: int) -> tuple[list[int], list[int]]:
    """Return X and X'."""
    r = powers(q)
    half = q // 2
    if q % 4 != 3:
        return [r[2 * i % (q - 1)] for i in range(half)], [
            r[(2 * i + 1) % (q - 1)] for i in range(half)
        ]
    w = (q + 1) // 4
    exponents = [*range(0, 2 * w - 1, 2), *range(2 * w - 1, 4 * w - 2, 2)]
    return [r[e] for e in exponents], [r[(e + 1) % (q - 1)] for e in exponents]


def _hosts(sizes: tuple[int, ...], options: Mapping[str, int]) -> int:
    del options
    return min(MAX_HOSTS_PER_SWITCH, (degree(sizes[0]) + 1) // 2)


def _positions(member: FamilyMember) -> list[Point]:
    (q,) = member.sizes
    return [place for group in groups_on_circle(2 * q, q) for place in group]


FAMILY = Family(
    name="slimfly",
    usage="slimfly,Q",
    summary="Slim Fly: 2 Q^2 switches at most 2 hops apart, Q a power of a prime",
    sizes=(1, 1),
    build=build,
    default_hosts=_hosts,
    positions=_positions,
)
