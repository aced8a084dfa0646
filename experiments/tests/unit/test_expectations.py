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
    rows = [
        {**row, **run["parameters"], "experiment": run["experiment"], "seed": run["seed"]}
        for row in run["rows"]
    ]
    return run["experiment"] == claim.experiment and claim.compute(rows) is not None


@pytest.mark.skipif(not has_history(), reason="a checkout without history")
def test_expectations_are_older_than_every_run_of_their_figures(tmp_path: Path) -> None:
    for paper in papers():
        for claim in paper.claims:
            if claim.expectation is None:
                continue
            for commit in {
                run["versions"]["commit"]
                for run in KNOWN.runs
                if run["parameters"].get("on") == SIMULATION and _of_its_run(claim, run)
            }:
                text = git("show", f"{commit}:experiments/{paper.author}/claims.yaml").stdout
                path = tmp_path / paper.author / claims_file.NAME
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
                then = {(c.place, c.what): c for c in claims_file.read(path).claims}
                before = then[claim.place, claim.what].expectation
                assert before is not None
                assert before.words == claim.expectation.words
