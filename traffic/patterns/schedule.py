"""The fabric's own all-to-all without contention, in phases.

References
----------
Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees, section 3.1.

"""

from __future__ import annotations

from collections.abc import Iterator

from topologies.fabric import Fabric
from traffic.patterns.pattern import Flows, Pattern, PatternError, to_each
from traffic.schedules.latin_square import latin_square_of
from traffic.schedules.schedule import triple


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the N phases of the triple schedule; PatternError where none is known."""
    del seed
    square = latin_square_of(fabric)
    if square is None:
        raise PatternError(
            f"pattern schedule is for Latin-square fat-trees (lsft,N), which {fabric.name} is not;"
            " use shift"
        )
    for destinations in triple(square).phases():
        yield to_each(destinations)


PATTERN = Pattern(
    "schedule",
    "all-to-all in N phases without contention, on Latin-square fat-trees",
    make,
    in_phases=True,
)
