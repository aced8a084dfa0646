"""Shift: host i sends to host i + K modulo N; ``shift`` runs K = 0 .. N - 1 as phases.

References
----------
Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees, section 2.1.2.

"""

from __future__ import annotations

from collections.abc import Iterator

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, Pattern, PatternError, to_each
from knotless.traffic.schedules.schedule import shift


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield all N phases."""
    del seed
    for destinations in shift(len(fabric.hosts)).phases():
        yield to_each(destinations)


def by(distance: int) -> Pattern:
    """Return the pattern ``shift:K``, which is phase K alone."""
    name = f"shift:{distance}"

    def one(fabric: Fabric, seed: int) -> Iterator[Flows]:
        del seed
        count = len(fabric.hosts)
        if distance % count == 0:
            raise PatternError(
                f"pattern {name}: on {fabric.name} every host would send to itself;"
                f" K must not be a multiple of its {count} hosts"
            )
        flows = to_each(shift(count).hosts)
        flows[:, 1] = (flows[:, 1] + distance % count) % count
        yield flows

    return Pattern(name, f"host i to host i + {distance}, modulo N", one)


PATTERN = Pattern(
    "shift",
    "all-to-all in N phases: in phase K host i to host i + K, modulo N; shift:K is one of them",
    make,
    in_phases=True,
    numbered=by,
)
