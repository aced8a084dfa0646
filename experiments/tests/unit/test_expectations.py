"""Expectations are older than the runs that meet or refute them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.tests.unit.test_stored_commits import git, has_history
from knotless.results import stored
from knotless.results.spread import spread_of
from knotless_experiments.framework.experiment import SIMULATION
from knotless_experiments.reproduction import claims_file, expectations
from knotless_experiments.reproduction.claim import Claim
from knotless_experiments.reproduction.claims import papers
from knotless_experiments.reproduction.rows import rows

KNOWN = stored.read()


def test_a_mean_within_the_limits_is_as_expected() -> None:
    claim = expectations.expected()[0]
    assert expectations.outcome(claim, None) == expectations.NOT_RUN
    assert expectations.outcome(claim, spread_of([0.93])) == expectations.AS_EXPECTED
    assert expectations.outcome(claim, spread_of([0.8, 1.2])) == expectations.REFUTED
    assert expectations.outcome(replace(claim, expectation=None), spread_of([1.0])) == (
        expectations.NOT_RUN
    )


def _of_its_run(claim: Claim, run: Mapping[str, Any]) -> bool:
    """Tell whether a figure is computed from a run."""
    of_run = rows(stored.Stored([run]), claim.experiment, SIMULATION)
    return bool(of_run) and claim.compute(of_run) is not None


def _expected_then(author: str, commit: str, folder: Path) -> dict[tuple[str, str], str]:
    """Return what was expected at a commit, by place and words of the claim."""
    path = folder / author / claims_file.NAME
    path.parent.mkdir(exist_ok=True)
    path.write_text(git("show", f"{commit}:experiments/{author}/{path.name}").stdout, "utf-8")
    return {
        (claim.place, claim.what): claim.expectation.words
        for claim in claims_file.read(path).claims
        if claim.expectation is not None
    }


@pytest.mark.skipif(not has_history(), reason="a checkout without history")
def test_expectations_are_older_than_every_run_of_their_figures(tmp_path: Path) -> None:
    checked = 0
    for paper in papers():
        mine = [claim for claim in paper.claims if claim.expectation is not None]
        of_runs = [
            (claim, run["versions"]["commit"])
            for run in KNOWN.runs
            for claim in mine
            if _of_its_run(claim, run)
        ]
        for commit in {commit for _, commit in of_runs}:
            then = _expected_then(paper.author, commit, tmp_path)
            for claim in [claim for claim, of_run in of_runs if of_run == commit]:
                assert claim.expectation is not None
                assert then[claim.place, claim.what] == claim.expectation.words
                checked += 1
    assert checked >= 17
