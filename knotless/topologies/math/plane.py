"""The projective plane of a prime-power order, with numbered points and lines.

Points are numbered P, P(0) .. P(n-1), P(0,0), P(0,1) .., first by c, then by r. Lines are
numbered the same way:

    L      = {P} and all P(c)
    L(c)   = {P} and all P(c,i)
    L(c,r) = {P(c)} and all P(i, r + c i)

with sums and products in the field of order n; for a prime order, modulo n.

References
----------
Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees, section 2.2.1, for
prime orders; over other fields the lines are defined by the same coordinates.

"""

from __future__ import annotations

from knotless.topologies.math.field import field


def lattice_point(order: int, c: int, r: int) -> int:
    """Return the number of point P(c,r), which is also that of line L(c,r)."""
    return 1 + order + c * order + r


def lines(order: int) -> list[list[int]]:
    """Return the points on each line, in ascending order; the order must be a prime power."""
    gf = field(order)
    every = range(order)
    result = [[0, *(1 + c for c in every)]]
    result += [[0, *(lattice_point(order, c, i) for i in every)] for c in every]
    result += [
        [1 + c, *(lattice_point(order, i, gf.plus[r][gf.times[c][i]]) for i in every)]
        for c in every
        for r in every
    ]
    return result
