"""``check --since`` says what a full check says, whatever was edited since."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from tests.support.fabric_edits import EDITS, Folder, nets, write_files


def check(*words: object) -> tuple[int, str, str]:
    """Return the exit status and what is printed; the second is standard output."""
    result = CliRunner(mix_stderr=False).invoke(
        main, ["check", *map(str, words)], catch_exceptions=False
    )
    return result.exit_code, result.stdout, result.stderr


def compare_edits(folder: Path, seed: int, count: int) -> Counter[str]:
    """Compare after ``count`` edits of fabrics; count the verdicts, and what was not checked anew.

    Every third edit is of what the one before has left, so that cycles are opened as well.
    """
    rng = random.Random(seed)  # noqa: S311
    seen: Counter[str] = Counter()
    fabric, state = folder / "fabric", folder / "state"
    for number in range(count):
        if number % 3 == 0:
            shutil.rmtree(fabric, ignore_errors=True)
            write_files(nets(rng.randrange(1000)), fabric)
        if check(fabric, "--write-state", state)[0] not in (0, 1):
            state.unlink(missing_ok=True)
        try:
            edit = EDITS[number % len(EDITS)]
            edit(Folder(fabric, rng))
        except (OSError, KeyError, ValueError, TypeError, IndexError):
            continue  # an earlier edit has taken away what this one would change
        full = check(fabric, "--json")
        since = check(fabric, "--since", state, "--json")
        assert since[:2] == full[:2], (seed, number, edit.__name__)
        verdict = json.loads(full[1])["acyclic"] if full[0] < 2 else "error"
        seen[f"acyclic: {verdict}"] += 1
        why = since[2].rpartition(": all is checked")[0].removeprefix("knotless: ")
        assert bool(why) != ("the verdict rests on" in since[2])
        seen[f"{edit.__name__}: {why or 'from the state'}"] += 1
    return seen


def test_as_a_full_check_after_forty_edits(tmp_path: Path) -> None:
    seen = compare_edits(tmp_path, seed=1, count=42)
    assert seen["touched: from the state"]


@pytest.mark.long
@pytest.mark.seeds(10)
def test_as_a_full_check_after_a_thousand_edits(tmp_path: Path, seed: int) -> None:
    seen = compare_edits(tmp_path, seed=100 + seed, count=100)
    print(seen)  # noqa: T201 - for people who run it with -s
