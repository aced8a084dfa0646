"""What trials of proofs for routers, subnets and 802.1Q switches share."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.proofs import judge, write_rules

Change = Callable[[dict[str, str], random.Random], None]
Trial = Callable[[Path, random.Random], tuple[str, Path, str]]


def write_damaged(
    intact: Path, folder: Path, changes: Sequence[Change], rng: random.Random
) -> list[str]:
    """Write the files of a folder to another one with changes; returns the names of these."""
    files = {path.name: path.read_text() for path in intact.iterdir()}
    before, kinds = dict(files), list[Change]()
    while files == before:
        kinds = rng.sample(changes, rng.choice([1, 1, 1, 2]))
        for change in kinds:
            change(files, rng)
    shutil.rmtree(folder, ignore_errors=True)
    write_rules(folder, files)
    return [getattr(change, "__name__", "") for change in kinds]


def refused(
    folder: Path,
    proofs: Sequence[str],
    head: Sequence[str],
    claim: Callable[[], Sequence[str]],
    classes: Sequence[str],
    rng: random.Random,
) -> int:
    """Judge a folder by ``proofs``, and by others of an adversary; returns how many.

    These claim what ``claim`` returns, of all classes or of some. Asserts that none is accepted.
    """
    proofs = [*proofs]
    for _ in range(4):
        lines = claim()
        for chosen in (classes, [one for one in classes if rng.random() < 0.9], classes[:1]):
            proofs.append("\n".join([*head, *lines, *chosen]) + "\n")
    for each in proofs:
        assert judge(folder, each).status == 1, each
    return len(proofs)


def first_with(trial: Trial, claim: str, scratch: Path, rng: random.Random) -> tuple[Path, str]:
    """Return a folder and its proof: others are drawn by a trial until one has this claim."""
    for number in range(1_000):
        place = scratch / str(number)
        place.mkdir()
        drawn, folder, proof = trial(place, rng)
        if drawn == claim:
            return folder, proof
    raise AssertionError(claim)


def without_ranks(cycle: str, classes: Sequence[str]) -> str:
    """Return a proof of a cycle with another claim, and nothing that speaks for it."""
    return "\n".join([f"{cycle.partition('claim ')[0]}claim safe", *classes]) + "\n"
