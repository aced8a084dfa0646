"""The failure table of a fabric: verdicts after all failures of links and switches, or a sample.

Every failure in it was evaluated itself, by a :class:`FailureModel`: see
:mod:`knotless.verification.failure_models`. Groups of similar failures only shorten what is
printed: two failures are similar if their parts have equal colours, see :func:`colours`.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from knotless.base.errors import KnotlessError
from knotless.routing.graphs.channels import Channels
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures
from knotless.verification.colour_refinement import Colour, colours
from knotless.verification.verdict_parts import Witness

MAX_SETS = 20_000
"""The limit of sets of two failures that are evaluated; of more, a sample is drawn."""


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

    def parts_of(self, fabric: Fabric) -> Failures:
        """Return the links and switches of ``fabric`` that fail."""
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
        """Return the group as plain values; ``undelivered`` is the maximum of its members."""
        return {**self.first.as_json(), "undelivered": self.undelivered, "count": self.count}


class FailureModel(Protocol):
    """A fabric, and how its forwarding reacts to failures."""

    @property
    def name(self) -> str:
        """The name of the reaction, as in ``reaction`` of ``knotless check --json``."""

    @property
    def differences(self) -> int:
        """The number of routes in which the intact model differs from the routes that were read."""

    @property
    def fabric(self) -> Fabric:
        """The intact fabric."""

    @property
    def channels(self) -> Channels:
        """The channels of the intact fabric."""

    def intact(self) -> FailureVerdict:
        """Return the verdict without failures."""

    def evaluate(self, failure: Failure) -> FailureVerdict:
        """Return the verdict on a failure."""


class FailureTable:
    """The verdicts of a model on sets of at most ``max_failed`` failures, in the order of trying.

    ``total`` is the number of such sets; if it is larger than ``planned``, ``limit`` sets of two
    were drawn with ``seed``. ``intact`` is the verdict without failures.
    """

    def __init__(
        self, model: FailureModel, max_failed: int, seed: int, limit: int = MAX_SETS
    ) -> None:
        """Choose the failures to evaluate. Raises KnotlessError as :func:`failure_sets`."""
        self.reaction, self.differences = model.name, model.differences
        self.max_failed, self.seed, self.limit = max_failed, seed, limit
        singles = single_failures(model.fabric, model.channels)
        self.total, self.planned, self._failures = failure_sets(singles, max_failed, seed, limit)
        self.intact = model.intact()
        self.verdicts: list[FailureVerdict] = []
        self._model = model
        self._colours: list[tuple[Colour, ...]] = []

    def evaluate(self) -> Iterator[FailureVerdict]:
        """Evaluate the planned failures; yield each verdict after it has been added."""
        for failure in self._failures:
            verdict = self._model.evaluate(failure)
            self.verdicts.append(verdict)
            self._colours.append(failure.colour)
            yield verdict

    @property
    def whole(self) -> bool:
        """Return whether all planned failures were evaluated."""
        return len(self.verdicts) == self.planned

    @property
    def acyclic(self) -> bool | None:
        """Return whether no failure evaluated makes a deadlock possible; None if unknown."""
        answers = {verdict.acyclic for verdict in (self.intact, *self.verdicts)}
        return False if False in answers else None if None in answers else True

    @property
    def worst(self) -> FailureVerdict | None:
        """The unsafe failure with the fewest parts, of these the one with the shortest cycle."""
        unsafe = [verdict for verdict in self.verdicts if verdict.acyclic is False]
        return min(unsafe, key=FailureVerdict.size) if unsafe else None

    @property
    def groups(self) -> list[FailureGroup]:
        """The groups of similar failures, unsafe ones first, large ones before small ones."""
        similar: dict[object, list[FailureVerdict]] = {}
        for colour, verdict in zip(self._colours, self.verdicts, strict=True):
            similar.setdefault((colour, verdict.acyclic, len(verdict.cycle)), []).append(verdict)
        groups = [
            FailureGroup(verdicts[0], len(verdicts), max(v.undelivered for v in verdicts))
            for verdicts in similar.values()
        ]
        rank = {False: 0, None: 1, True: 2}
        return sorted(groups, key=lambda group: (rank[group.first.acyclic], -group.count))


def single_failures(fabric: Fabric, channels: Channels) -> list[Failure]:
    """Return the failure of every link between switches, then of every switch."""
    colour, index = colours(fabric, channels), fabric.switch_index
    failures = []
    for number, link in enumerate(fabric.links):
        a, b = (index[link.a], link.a_port), (index[link.b], link.b_port)
        directions = (channels.leaving[a], channels.leaving[b])
        name = "-".join(channels.name(channel, 0).rpartition("/")[0] for channel in directions)
        lower, higher = sorted((colour[a[0]], colour[b[0]]))
        failures.append(Failure((name,), (number,), directions, (), (("link", lower, higher),)))
    for switch, name in enumerate(channels.names):
        failures.append(Failure((name,), (), (), (switch,), (("switch", colour[switch]),)))
    return failures


def failure_sets(
    singles: Sequence[Failure], max_failed: int, seed: int, limit: int = MAX_SETS
) -> tuple[int, int, Iterator[Failure]]:
    """Return the sets of 1 to ``max_failed`` failures: how many there are and are taken, and these.

    All single failures are taken. If there are more than ``limit`` larger sets, ``limit`` of them
    are drawn.

    Raises
    ------
    KnotlessError
        ``max_failed`` is not 1 or 2.

    """
    if max_failed not in (1, 2):
        raise KnotlessError(f"--failures {max_failed}: must be 1 or 2")
    pairs = math.comb(len(singles), 2) if max_failed == 2 else 0
    count = min(pairs, limit)
    return len(singles) + pairs, len(singles) + count, _sets(singles, pairs, count, seed)


def _sets(singles: Sequence[Failure], pairs: int, count: int, seed: int) -> Iterator[Failure]:
    yield from singles
    if count == pairs:
        combinations = itertools.combinations(singles, 2) if pairs else ()
        yield from (one + other for one, other in combinations)
        return
    rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
    drawn: set[tuple[int, int]] = set()
    while len(drawn) < count:
        a, b = sorted(rng.sample(range(len(singles)), 2))
        if (a, b) not in drawn:
            drawn.add((a, b))
            yield singles[a] + singles[b]
