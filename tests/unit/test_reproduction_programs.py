"""The papers' parallel programs compared with ours: which rows are used for a figure."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.reproduction.claim import Claim
from experiments.reproduction.programs import PROGRAMS_000, PROGRAMS_004


def row(fabric: str, engine: str, vcs: int, seconds: float, kernel: str) -> dict[str, Any]:
    case = {"fabric": fabric, "engine": engine, "vcs": vcs, "kernel": kernel}
    return {**case, "class": "S", "processes": 16, "seconds": seconds}


def claim(claims: list[Claim], place: str, words: str) -> Claim:
    (found,) = [each for each in claims if each.place == place and words in each.what]
    return found


def test_engines_are_compared_on_the_fabric_of_the_table() -> None:
    a, b = ("irregular-a,hosts=1,rate=5,delay=5000", "irregular-b,rate=5,delay=5000")
    rows = [
        row(a, "dl", 2, 3.0, "is"),
        row(a, "updown", 1, 4.0, "is"),
        row(a.replace("5,", "9,"), "updown", 1, 100.0, "is"),
        row(b, "dl", 2, 50.0, "is"),
        row(b, "updown", 1, 50.0, "is"),
    ]
    of_a = claim(PROGRAMS_000, "Table 4, A", "IS.S.16").compute(rows)
    of_b = claim(PROGRAMS_000, "Table 5, B", "IS.S.16").compute(rows)
    assert of_a is not None
    assert of_b is not None
    assert of_a.mean == pytest.approx(0.75)
    assert of_a.count == 1
    assert of_b.mean == pytest.approx(1.0)
    assert claim(PROGRAMS_000, "Table 4, A", "IS.S.32").compute(rows) is None


def test_fabrics_are_compared_on_links_of_one_kind() -> None:
    fast, slow = ",rate=1000,delay=5", ",rate=5,delay=5000"
    rows = [
        row("flat,16" + fast, "updown", 1, 1.0, "ft"),
        row("torus,4,4" + fast, "dor", 1, 2.0, "ft"),
        row("mtree,4,4" + fast, "updown", 1, 8.0, "ft"),
        row("flat,16" + slow, "updown", 1, 100.0, "ft"),
        row("flat,16" + fast, "updown", 1, 1.0, "ep"),
        row("torus,4,4" + fast, "dor", 1, 1.0, "ep"),
    ]
    loops = claim(PROGRAMS_004, "Figure 12", "looped fabrics").compute(rows)
    tree = claim(PROGRAMS_004, "Figure 12", "M-tree").compute(rows)
    assert loops is not None
    assert tree is not None
    assert loops.mean == pytest.approx(0.5)
    assert loops.count == 1
    assert tree.mean == pytest.approx(0.25)
