"""What if something fails: the certificate of a fabric for all failures, or for a sample of them.

Every failure in a certificate was evaluated itself. Groups of similar failures only shorten what is
printed: two failures are similar if their parts have equal colours, see :func:`colours`.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from knotless.base.errors import KnotlessError
from knotless.routing.graphs.channels import Channels
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures
from knotless.verification.colours import Colour, colours
from knotless.verification.dependencies import Witness

MOST_SETS = 20_000
"""The most sets of two or more failures that are evaluated; of more, a sample is drawn."""


@dataclass(frozen=True)
class Failure:
    """Links and switches that fail together, by name and number.

    ``channels`` are both directions of the links.
    """

    names: tuple[str, ...]
    links: tuple[int, ...]
    channels: tuple[int, ...]
    switches: tuple[int, ...]
    colour: tuple[Colour, ...]

    def __add__(self, other: Failure) -> Failure:
        """Return both together."""
        return Failure(
            self.names + other.names,
            self.links + other.links,
            self.channels + other.channels,
            self.switches + other.switches,
            tuple(sorted(self.colour + other.colour)),
        )

    def of(self, fabric: Fabric) -> Failures:
        """Return the failures of ``fabric``."""
        return Failures(
            tuple(fabric.links[number].name for number in sorted(self.links)),
            tuple(fabric.switches[number].name for number in sorted(self.switches)),
        )


@dataclass(frozen=True)
class FailureVerdict:
    """The verdict if ``failed`` have failed; ``acyclic`` None: unknown.

    ``undelivered`` are the pairs of a host and a destination, both at switches that work, between
    which some packet may not arrive.
    """

    failed: tuple[str, ...]
    acyclic: bool | None
    cycle: list[str]
    undelivered: int
    witnesses: tuple[Witness, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the verdict in the form that ``knotless check --json`` has in ``failures``."""
        return {
            "failed": list(self.failed),
            "acyclic": self.acyclic,
            "cycle": self.cycle,
            "undelivered": self.undelivered,
        }

    def size(self) -> tuple[int, int]:
        """Return the number of parts that failed, and the length of the cycle."""
        return len(self.failed), len(self.cycle)

    @property
    def text(self) -> str:
        """The verdict as text."""
        if self.acyclic is None:
            return "unknown"
        return "cannot deadlock" if self.acyclic else "CAN DEADLOCK"


@dataclass(frozen=True)
class FailureGroup:
    """Failures with parts of equal colours and with equal verdicts; ``first`` is one of them."""

    first: FailureVerdict
    count: int
    undelivered: int

    def as_json(self) -> dict[str, object]:
        """Return the group as plain values; ``undelivered`` is the most of any member."""
        return {**self.first.as_json(), "undelivered": self.undelivered, "count": self.count}


@dataclass
class Certificate:
    """The verdicts on failures, in the order in which they were evaluated.

    ``total`` is the number of sets of at most ``most`` failures; if it is larger than ``planned``,
    those of two or more were drawn with ``seed``. ``intact`` is the verdict of the model without
    failures, ``differences`` the number of routes in which the model differs from those read.
    """

    reaction: str
    most: int
    total: int
    planned: int
    seed: int
    limit: int
    intact: FailureVerdict
    differences: int = 0
    verdicts: list[FailureVerdict] = field(default_factory=list)
    _colours: list[tuple[Colour, ...]] = field(default_factory=list)

    def add(self, failure: Failure, verdict: FailureVerdict) -> None:
        """Add the verdict on a failure."""
        self.verdicts.append(verdict)
        self._colours.append(failure.colour)

    @property
    def whole(self) -> bool:
        """Whether all planned failures were evaluated."""
        return len(self.verdicts) == self.planned

    @property
    def acyclic(self) -> bool | None:
        """Whether no failure that was evaluated makes a deadlock possible; None if unknown."""
        found = {of.acyclic for of in (self.intact, *self.verdicts)}
        return False if False in found else None if None in found else True

    @property
    def worst(self) -> FailureVerdict | None:
        """The unsafe failure with the fewest parts, of these the one with the shortest cycle."""
        unsafe = [of for of in self.verdicts if of.acyclic is False]
        return min(unsafe, key=lambda of: of.size()) if unsafe else None

    @property
    def groups(self) -> list[FailureGroup]:
        """The groups of similar failures, unsafe ones first, large ones before small ones."""
        found: dict[object, list[FailureVerdict]] = {}
        for colour, verdict in zip(self._colours, self.verdicts, strict=True):
            found.setdefault((colour, verdict.acyclic, len(verdict.cycle)), []).append(verdict)
        made = [
            FailureGroup(of[0], len(of), max(v.undelivered for v in of)) for of in found.values()
        ]
        rank = {False: 0, None: 1, True: 2}
        return sorted(made, key=lambda group: (rank[group.first.acyclic], -group.count))


def single_failures(fabric: Fabric, channels: Channels) -> list[Failure]:
    """Return the failure of every link between switches, then of every switch."""
    colour = colours(fabric, channels)
    index, found = fabric.switch_index, []
    for number, link in enumerate(fabric.links):
        a, b = (index[link.a], link.a_port), (index[link.b], link.b_port)
        both = (channels.leaving[a], channels.leaving[b])
        name = "-".join(channels.name(of, 0).rpartition("/")[0] for of in both)
        near, far = sorted((colour[a[0]], colour[b[0]]))
        found.append(Failure((name,), (number,), both, (), (("link", near, far),)))
    for at, name in enumerate(channels.names):
        found.append(Failure((name,), (), (), (at,), (("switch", colour[at]),)))
    return found


def sets_of(
    singles: Sequence[Failure], most: int, seed: int, limit: int = MOST_SETS
) -> tuple[int, int, Iterable[Failure]]:
    """Return the sets of 1 to ``most`` failures: how many there are and are taken, and these.

    All single failures are taken. If there are more than ``limit`` larger sets, ``limit`` of them
    are drawn.

    Raises
    ------
    KnotlessError
        ``most`` is not 1 or 2.

    """
    if most not in (1, 2):
        raise KnotlessError(f"--failures {most}: must be 1 or 2")
    pairs = math.comb(len(singles), 2) if most == 2 else 0
    taken = min(pairs, limit)
    return len(singles) + pairs, len(singles) + taken, _sets(singles, pairs, taken, seed)


def _sets(singles: Sequence[Failure], pairs: int, taken: int, seed: int) -> Iterator[Failure]:
    yield from singles
    if taken == pairs:
        both = itertools.combinations(singles, 2) if pairs else ()
        yield from (one + other for one, other in both)
        return
    draw = random.Random(seed)  # noqa: S311 - a sample, not a secret
    drawn: set[tuple[int, int]] = set()
    while len(drawn) < taken:
        a, b = sorted(draw.sample(range(len(singles)), 2))
        if (a, b) not in drawn:
            drawn.add((a, b))
            yield singles[a] + singles[b]
