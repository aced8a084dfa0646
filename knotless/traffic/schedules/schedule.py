"""All-to-all schedules: the phase in which each host sends to each other one.

A schedule of N hosts has N phases, each a permutation of the hosts. Over all phases each host
sends once to each host, including itself. On Latin-square fat-trees the triple schedule (all
hosts) and the vector-table schedule (some hosts) never put two flows on one channel.

References
----------
Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees, sections 2.1.2 (shift),
3.1 (triples) and 3.2 (vector table).

"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from knotless.base.errors import KnotlessError
from knotless.routing.graphs.channels import Ints
from knotless.topologies.math.field import field
from knotless.traffic.schedules.latin_square import LatinSquare

Vector = tuple[int | None, int]
"""[slope, hop] between leaves; the slope None is infinite; (None, 0) is the zero vector."""


class ScheduleError(KnotlessError):
    """A schedule that does not fit the fabric: wrong family, too many leaves or hosts."""


@dataclass(frozen=True)
class Schedule:
    """A schedule of some hosts of a fabric.

    ``hosts`` are their indices in the fabric. ``phases()`` yields the phases, as many as hosts;
    each is an array (hosts,) of destinations, which are indices into ``hosts``.
    """

    kind: str
    hosts: Ints
    phases: Callable[[], Iterator[Ints]]

    def flows(self) -> Iterator[Ints]:
        """Yield each phase as flows (hosts, 2) between hosts of the fabric."""
        for destinations in self.phases():
            yield np.stack([self.hosts, self.hosts[destinations]], axis=1)


def shift(count: int) -> Schedule:
    """Return the schedule of ``count`` hosts in which phase i sends from S to (S + i) mod N."""
    every = np.arange(count, dtype=np.int32)

    def phases() -> Iterator[Ints]:
        for i in range(count):
            yield np.roll(every, -i)

    return Schedule("shift", every, phases)


def triple(square: LatinSquare) -> Schedule:
    """Return the contention-free schedule of all hosts of an LSFT.

    A phase is a triple (a, b, c): the differences, modulo n + 1, between the positions of input
    and output port at the first leaf, the spine and the last leaf. All triples with b != 0 or
    b = c = 0 are run, in ascending order.

    With two sides (in the paper only said to follow by symmetry), spines send each flow to the
    other side. Then b = 0 is the leaf at the same point on the other side, which can be reached
    through any of n + 1 spines: the position of the source on its leaf selects one (a = 0), and c
    takes all values.

    Raises
    ------
    ScheduleError
        The number of hosts on a leaf is not n + 1.

    """
    degree = square.order + 1
    if square.hosts != degree:
        raise ScheduleError(
            f"the triple schedule needs {degree} hosts on each leaf of order {square.order},"
            f" not {square.hosts}; use --lattice to schedule some of them"
        )
    count = square.leaves * degree
    leaf, place = np.divmod(np.arange(count, dtype=np.int32), degree)
    side, point = np.divmod(leaf, len(square.lines))

    def destinations(other: int, a: int, b: int, c: int) -> Ints:
        up = (place + a) % degree
        line = square.lines[point, up]
        out = (square.at_line[point, up] + b) % degree
        peer_leaf = square.points[line, out] + (side ^ other) * len(square.lines)
        to: Ints = peer_leaf * degree + (square.at_point[line, out] + c) % degree
        return to.astype(np.int32)

    def phases() -> Iterator[Ints]:
        for other in range(square.sides):
            for a in range(degree):
                for b in range(degree):
                    for c in range(degree):
                        if b or (a if other else c) == 0:
                            yield destinations(other, a, b, c)

    return Schedule("triple", np.arange(count, dtype=np.int32), phases)


def vector_table(square: LatinSquare, columns: int, hosts: int) -> Schedule:
    """Return the contention-free schedule of ``hosts`` hosts on n x ``columns`` leaves.

    The leaves are the lattice points P(c, r) with c < ``columns``, listed row by row: host j
    of P(c, r) has index (r k + c) m + j (k columns, m hosts). Only the first side is used.

    Raises
    ------
    ScheduleError
        Not 1 <= hosts <= columns <= order, or a leaf has fewer hosts.

    """
    order = square.order
    if not 1 <= hosts <= columns <= order:
        raise ScheduleError(
            f"a lattice K,M on order {order} needs 1 <= M <= K <= {order}, not {columns},{hosts}"
        )
    if hosts > square.hosts:
        raise ScheduleError(f"each leaf has {square.hosts} hosts, so M must not be {hosts}")
    vectors = first_column(order, columns)
    targets = np.array([_targets(order, columns, vector) for vector in vectors], dtype=np.int32)
    row, column = np.divmod(np.arange(order * columns, dtype=np.int32), columns)
    leaves = 1 + order + column * order + row
    place = np.arange(hosts, dtype=np.int32)

    def phases() -> Iterator[Ints]:
        for group in range(len(vectors)):
            # Column j is the first one shifted down by j (n - 1).
            chosen = (group - place * (order - 1)) % len(vectors)
            for i in range(hosts):
                to = targets[chosen] * hosts + ((i + place) % hosts)[:, None]
                yield to.T.reshape(-1)

    members = (leaves[:, None] * square.hosts + place[None, :]).reshape(-1).astype(np.int32)
    return Schedule("vector-table", members, phases)


def first_column(order: int, columns: int) -> list[Vector]:
    """Return column 0 of the vector table: infinite slope, slopes 0 .. n - 1, the zero vector."""
    upright: list[Vector] = [(None, hop) for hop in range(1, order)]
    sloped: list[Vector] = [(slope, hop) for slope in range(order) for hop in range(1, columns)]
    return [*upright, *sloped, (None, 0)]


def _targets(order: int, columns: int, vector: Vector) -> list[int]:
    """Return the destination of ``vector`` from each leaf, both as r * columns + c."""
    gf = field(order)
    slope, hop = vector
    targets = []
    for r in range(order):
        for c in range(columns):
            if slope is None:
                targets.append((r + hop) % order * columns + c)
                continue
            to_c = (c + hop) % columns
            rise = gf.times[slope][gf.plus[to_c][gf.negative[c]]]
            targets.append(gf.plus[rise][r] * columns + to_c)
    return targets
