"""A session says what a full check says, whatever was edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.session_edits import compare_edits


def test_as_a_full_check_after_twenty_edits(tmp_path: Path) -> None:
    seen = compare_edits(tmp_path, seed=1, count=20)
    assert seen["resident"] > 10
    assert seen["closed"]
    assert seen["opened"]


@pytest.mark.deep
def test_as_a_full_check_after_a_thousand_edits(tmp_path: Path) -> None:
    seen = compare_edits(tmp_path, seed=2, count=1000)
    assert seen["resident"] >= 700
    assert min(seen["closed"], seen["opened"]) >= 100
