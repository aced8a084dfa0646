"""The fabric's contention-free all-to-all, in phases.

References
----------
Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees, section 3.1.

"""

from __future__ import annotations

from collections.abc import Iterator

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, Pattern, PatternError, to_each
from knotless.traffic.schedules.latin_square import latin_square_of
from knotless.traffic.schedules.schedule import triple


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the N phases of the triple schedule; raises PatternError on other fabrics."""
    del seed
    square = latin_square_of(fabric)
    if square is None:
        raise PatternError(
            f"pattern schedule needs a Latin-square fat-tree (lsft,N), not {fabric.name}; use shift"
        )
    for destinations in triple(square).phases():
        yield to_each(destinations)


PATTERN = Pattern(
    "schedule",
    "all-to-all in N phases without contention, on Latin-square fat-trees",
    make,
    in_phases=True,
)
