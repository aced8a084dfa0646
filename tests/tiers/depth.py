"""How many cases of a test run, and which: pure decisions."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.support import REPOSITORY

SEED_FILE = REPOSITORY / "tests" / "SEED"
GATE_CASES = 10
"""Cases of a property, and of a test that is marked ``thin``, in the gate."""
EXAMPLES = {"gate": 10, "deep": 100, "night": 200}
"""Examples of Hypothesis for a property whose factor is 1."""
ROOTS = ("tests", "experiments/tests")
"""Folders of tests: of the product, and of what only experiments have."""
FABRICS = (
    *("tests/integration/", "tests/kernel/", "tests/browser/"),
    *("experiments/tests/integration/", "experiments/tests/kernel/", "experiments/tests/alone/"),
)
"""Folders whose tests start fabrics, kernels or browsers, mostly as root: in the gate, those of
them run that are marked ``smoke``."""
SEEDS_APART = 100_000
"""Numbers of cases of two seeds never overlap: no test has so many."""


class Tier(StrEnum):
    """Which tests run, and how many cases of each."""

    GATE = "gate"
    DEEP = "deep"
    NIGHT = "night"


def stored_seed() -> int:
    """Return the seed that the environment asks for, or that of the last night that passed."""
    asked = os.environ.get("SEED")
    return int(SEED_FILE.read_text() if asked is None else asked)


def numbers_of_the_seed(numbers: Iterable[int]) -> list[int]:
    """Return numbers of cases, moved to those of the seed of this run."""
    return [stored_seed() * SEEDS_APART + number for number in numbers]


@dataclass(frozen=True)
class Depth:
    """The depth of one run; the files of ``deeper`` run as deep in the gate as in ``deep``."""

    tier: Tier
    seed: int
    deeper: Collection[Path] = ()

    def of(self, path: Path) -> Tier:
        """Return the tier to whose depth a file of tests runs."""
        return Tier.DEEP if self.tier is Tier.GATE and path in self.deeper else self.tier

    def seeds(self, path: Path, count: int, gate: int = GATE_CASES) -> Sequence[int]:
        """Return the numbers of the cases of a test that has ``count`` of them in ``deep``.

        Those of a smaller tier are the first ones of a larger.
        """
        tier = self.of(path)
        if tier is Tier.GATE:
            count = min(count, gate)
        first = self.seed * SEEDS_APART
        return range(first, first + count)

    def examples(self, path: Path, factor: float = 1.0) -> int:
        """Return how many examples a property has that has ``factor`` times the usual number."""
        return max(2, round(EXAMPLES[self.of(path)] * factor))

    def kept(self, path: Path, test: str, count: int, gate: int = GATE_CASES) -> Collection[int]:
        """Return which of ``count`` listed cases of a test run: in the gate a draw from all."""
        if self.of(path) is not Tier.GATE or count <= gate:
            return range(count)
        rng = random.Random(f"{self.seed} {test}")  # noqa: S311 - repeatable, not secret
        return frozenset(rng.sample(range(count), gate))
