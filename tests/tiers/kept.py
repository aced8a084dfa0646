"""Tests that have failed: kept as files, to run first in every tier until they pass."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support import REPOSITORY
from tests.tiers.depth import Tier

FOLDER = REPOSITORY / "tests" / "kept"


@dataclass(frozen=True, order=True)
class Case:
    """A test that has failed, and what repeats it: its tier and its seed."""

    test: str
    tier: Tier
    seed: int

    def file(self, folder: Path) -> Path:
        """Return where it is kept: one file for each test."""
        return folder / f"{hashlib.sha256(self.test.encode()).hexdigest()[:12]}.json"


def keep(case: Case, folder: Path = FOLDER) -> None:
    """Write down a test that has failed; what is kept of it already stays, as it came first."""
    folder.mkdir(exist_ok=True)
    file = case.file(folder)
    if not file.exists():
        file.write_text(json.dumps(asdict(case), indent=1) + "\n", encoding="utf-8")


def cases(folder: Path = FOLDER) -> list[Case]:
    """Return what is kept, in the order of the names of tests."""
    return sorted(map(_read, folder.glob("*.json")))


def forget(case: Case, folder: Path = FOLDER) -> None:
    """Remove a test that passes with the tier and the seed with which it had failed."""
    file = case.file(folder)
    if file.exists() and _read(file) == case:
        file.unlink()


def _read(file: Path) -> Case:
    read = json.loads(file.read_text(encoding="utf-8"))
    return Case(read["test"], Tier(read["tier"]), read["seed"])
