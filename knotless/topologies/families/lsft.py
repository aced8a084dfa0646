"""Latin-square fat-trees: leaves are the points of a projective plane, spines its lines."""

from __future__ import annotations

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, assemble, join, need_room
from knotless.topologies.math.field import prime_power
from knotless.topologies.math.plane import lines


def build(request: Request) -> Fabric:
    """Return the Latin-square fat-tree of order n, with n + 1 hosts on each leaf.

    The n^2 + n + 1 leaves come first, in the order of :mod:`knotless.topologies.math.plane`, then
    the same number of spines. With ``sides=2`` each spine has twice as many ports, which connect a
    second set of leaves, numbered after the first.

    Raises
    ------
    SpecError
        The order is not a prime power, or ``sides`` is neither 1 nor 2.

    References
    ----------
    Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees, section 2.2.

    """
    (order,) = request.sizes
    sides = request.options["sides"]
    if sides not in (1, 2):
        raise SpecError(f"{request.name}: sides must be 1 or 2, not {sides}")
    points = order * order + order + 1
    need_room(request, sides * points, points, sides * points * (order + 1))
    if prime_power(order) is None:
        raise SpecError(
            f"{request.name}: the order must be a power of a prime (2, 3, 4, 5, 7, 8, 9, 11..),"
            f" not {order}"
        )
    cables = [
        join(side * points + point, sides * points + line)
        for line, on_it in enumerate(lines(order))
        for side in range(sides)
        for point in on_it
    ]
    return assemble(request, [request.hosts] * (sides * points) + [0] * points, cables)


FAMILY = Family(
    name="lsft",
    usage="lsft,N",
    summary="Latin-square fat-tree of order N, a power of a prime; sides=2 doubles it",
    sizes=(1, 1),
    build=build,
    options={"sides": 1},
    default_hosts=lambda sizes, _: sizes[0] + 1,
)
