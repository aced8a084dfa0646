"""Two irregular fabrics of 16 switches, with the properties of the graphs A and B of a paper.

Koibuchi et al. measured two irregular graphs that they published only as pictures. The graphs here
are not the same. They were found by a random search, which was not kept, for graphs with properties
that the text of the paper states, which the tests check (docs/reproduction/fitted.md has a search
that is, and where A and B lie among a thousand such graphs):

- 16 switches, each with at most 4 links to other switches; connected; no parallel links;
- diameter 6, so that a structured buffer pool needs 6 virtual channels;
- up*/down* from the first switch and prefix routing are not minimal; descending layers are
  minimal with 2 virtual channels;
- B has more alternative paths per pair than A.

Two conditions were chosen because they fit what the paper measured: paths are longer on A than on
B, and longer on B than on the mesh 4x4; up*/down* loses more throughput on A than on B.

References
----------
Koibuchi, Watanabe, Otsuka, Jouraku, Amano: deadlock-free deterministic routings measured on the
RHiNET-2 cluster.

"""

from __future__ import annotations

from collections.abc import Mapping

from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, assemble, join

_SWITCHES = 16

# For each switch, its neighbours with higher numbers.
_A = {
    0: (1, 4),
    1: (2, 3),
    2: (5, 7),
    3: (5,),
    4: (6, 9, 13),
    5: (11, 14),
    6: (8, 9),
    7: (11, 12, 15),
    8: (13, 15),
    9: (10,),
    10: (15,),
    13: (15,),
}
_B = {
    0: (1, 2, 6, 8),
    1: (3, 7, 10),
    2: (4,),
    3: (5, 9, 14),
    4: (9, 11),
    5: (7, 12, 13),
    6: (8, 11),
    7: (9, 14),
    10: (11,),
    12: (15,),
    13: (14, 15),
}


def build_a(request: Request) -> Fabric:
    """Return A: 22 links, long paths, few alternatives (1.48 shortest paths per pair)."""
    return _build(request, _A)


def build_b(request: Request) -> Fabric:
    """Return B: 24 links, more alternatives (2.38 shortest paths per pair)."""
    return _build(request, _B)


def _build(request: Request, later: dict[int, tuple[int, ...]]) -> Fabric:
    cables = [join(low, high) for low, highs in later.items() for high in highs]
    return assemble(request, [request.hosts] * _SWITCHES, cables)


def _four_hosts(sizes: tuple[int, ...], options: Mapping[str, int]) -> int:
    del sizes, options
    return 4


A = Family(
    name="irregular-a",
    usage="irregular-a",
    summary="16 switches, irregular, few alternative paths",
    sizes=(0, 0),
    build=build_a,
    default_hosts=_four_hosts,
)
B = Family(
    name="irregular-b",
    usage="irregular-b",
    summary="16 switches, irregular, more alternative paths",
    sizes=(0, 0),
    build=build_b,
    default_hosts=_four_hosts,
)
