"""Stored runs name the commit that measured them, and it is in the history."""

from __future__ import annotations

import json
import subprocess

import pytest

from knotless.base.package import CHECKOUT
from knotless.results import stored
from knotless_experiments.reproduction.sensitivity import RUNS
from tests.support import REPOSITORY
from tests.support.waiting import HANG_S


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *words], cwd=CHECKOUT, capture_output=True, text=True, timeout=HANG_S, check=False
    )


def has_history() -> bool:
    try:
        return git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"
    except OSError:
        return False


@pytest.mark.skipif(not has_history(), reason="a checkout without history")
def test_stored_runs_are_of_commits_in_the_history() -> None:
    runs = [*stored.read().runs, *stored.read(stored.FOLDER / RUNS).runs]
    commits = {run["versions"]["commit"] for run in runs}
    for path in (REPOSITORY / "docs" / "benchmarks").glob("*.json"):
        benchmark = json.loads(path.read_text())
        rows = [row for row in benchmark.get("rows", []) if "commit" in row]
        commits |= {benchmark["versions"]["commit"], *(row["commit"] for row in rows)}
    assert len(commits) > 10
    unknown = {
        commit
        for commit in commits
        if git("merge-base", "--is-ancestor", commit, "HEAD").returncode != 0
    }
    assert not unknown
