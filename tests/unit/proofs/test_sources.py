"""The checker that is built is the one that was extracted from what is proven."""

from __future__ import annotations

import hashlib
import re

from tests.support.proofs import PROOFS

COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)


def test_the_checker_is_the_one_that_was_extracted_from_these_sources() -> None:
    lines = (PROOFS / "checker.sha256").read_text().splitlines()
    sums = {name: found for found, name in (line.split("  ") for line in lines)}
    assert {"Spec.v", "Checker.v", "Proof.v", "Extract.v", "prune.py", "checker.ml"} <= set(sums)
    assert {path.name for path in PROOFS.glob("*.v")} <= set(sums)
    # After a change of these: make -C proofs, which needs Coq.
    assert sums == {name: hashlib.sha256((PROOFS / name).read_bytes()).hexdigest() for name in sums}


def test_the_specification_is_short_enough_to_read() -> None:
    text = COMMENT.sub("", (PROOFS / "Spec.v").read_text())
    assert len([line for line in text.splitlines() if line.strip()]) < 250


def test_nothing_is_taken_for_granted() -> None:
    for path in PROOFS.glob("*.v"):
        words = set(re.findall(r"\w+", COMMENT.sub("", path.read_text())))
        assert not words & {"Axiom", "Axioms", "Parameter", "Admitted", "admit", "Conjecture"}, path
