"""Random regular fabrics; a seed gives the same fabric on every machine and Python version."""

from __future__ import annotations

from random import Random

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, assemble, join, need_room

SWAPS_A_LINK = 10
"""Random swaps tried per link; a few already remove the structure of the initial graph."""

Edge = tuple[int, int]


def build(request: Request) -> Fabric:
    """Return a connected random fabric of N switches with ``degree`` links each, none parallel.

    The initial graph is a circulant of that degree. The ends of random pairs of links are
    swapped; swaps that would create a loop or parallel links are skipped. If the result is not
    connected, more swaps connect its components. Only ``Random.random`` is used, because Python
    guarantees its sequence for a given seed.

    Raises
    ------
    SpecError
        There is no such fabric: N is below 2, the degree is not below N, N times the degree is odd,
        or the degree is 1 and N is above 2.

    """
    (count,) = request.sizes
    degree, seed = request.options["degree"], request.options["seed"]
    if count < 2:
        raise SpecError(f"{request.name}: a random fabric has 2 switches or more, not {count}")
    if not 1 <= degree < count:
        raise SpecError(
            f"{request.name}: the degree must be 1 to {count - 1}, not {degree}; for example"
            f" random,{count},degree={count - 1}"
        )
    if count * degree % 2:
        raise SpecError(
            f"{request.name}: {count} switches of degree {degree} have an odd number of link ends;"
            " one of the two must be even"
        )
    if degree == 1 and count > 2:
        raise SpecError(f"{request.name}: degree 1 cannot connect {count} switches; use 2 or more")
    if seed < 0:
        raise SpecError(f"{request.name}: the seed must be 0 or more, not {seed}")
    need_room(request, count, 0, count * degree // 2)
    edges = random_regular(count, degree, seed)
    return assemble(request, [request.hosts] * count, [join(a, b) for a, b in sorted(edges)])


def random_regular(count: int, degree: int, seed: int) -> list[Edge]:
    """Return the edges (low, high) of a connected simple regular graph."""
    swapper = _Swapper(_circulant(count, degree), seed)
    for _ in range(SWAPS_A_LINK * len(swapper.edges)):
        swapper.swap(swapper.pick(len(swapper.edges)), swapper.pick(len(swapper.edges)))
    parts = _parts(count, swapper.edges)
    while max(parts) > 0:
        inside = [i for i, (a, _) in enumerate(swapper.edges) if parts[a] == 0]
        outside = [i for i, (a, _) in enumerate(swapper.edges) if parts[a] > 0]
        before = list(swapper.edges)
        swapper.swap(inside[swapper.pick(len(inside))], outside[swapper.pick(len(outside))])
        fewer = _parts(count, swapper.edges)
        if max(fewer) < max(parts):
            parts = fewer
        else:  # both swapped links were bridges
            swapper = _Swapper(before, swapper.rng)
    return swapper.edges


def _circulant(count: int, degree: int) -> list[Edge]:
    edges = {
        (min(i, j), max(i, j))
        for i in range(count)
        for j in ((i + step) % count for step in range(1, degree // 2 + 1))
    }
    if degree % 2:
        edges |= {(i, i + count // 2) for i in range(count // 2)}
    return sorted(edges)


class _Swapper:
    """The edges of a simple graph, and random swaps of their ends that keep it simple."""

    def __init__(self, edges: list[Edge], source: int | Random) -> None:
        self.edges = edges
        self.edge_set = set(edges)
        # Not used for cryptography; it only needs to be repeatable.
        self.rng = source if isinstance(source, Random) else Random(source)  # noqa: S311

    def pick(self, count: int) -> int:
        """Return a random number below ``count``."""
        return int(self.rng.random() * count)

    def swap(self, i: int, j: int) -> None:
        """Replace a-b, c-d at random by a-c, b-d or by a-d, b-c, if the graph stays simple."""
        (a, b), (c, d) = self.edges[i], self.edges[j]
        if self.rng.random() < 0.5:
            c, d = d, c
        new = {(min(a, c), max(a, c)), (min(b, d), max(b, d))}
        if a == c or b == d or len(new) < 2 or new & self.edge_set:
            return
        self.edge_set -= {self.edges[i], self.edges[j]}
        self.edge_set |= new
        self.edges[i], self.edges[j] = sorted(new)


def _parts(count: int, edges: list[Edge]) -> list[int]:
    """Return the number (from 0) of the connected component of each switch."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    part = [-1] * count
    number = -1
    for start in range(count):
        if part[start] >= 0:
            continue
        number += 1
        part[start] = number
        frontier = [start]
        while frontier:
            for neighbour in neighbours[frontier.pop()]:
                if part[neighbour] < 0:
                    part[neighbour] = number
                    frontier.append(neighbour)
    return part


FAMILY = Family(
    name="random",
    usage="random,N",
    summary="N switches with random links; degree= (4), seed=",
    sizes=(1, 1),
    build=build,
    options={"degree": 4, "seed": 1},
    default_hosts=lambda sizes, _: 4,  # noqa: ARG005 - the same for all sizes
)
