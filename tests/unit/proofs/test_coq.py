"""The proof compiles and assumes nothing, and the checker is what Coq extracts from it."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tests.support.checker_faults import FAULTS, Fault
from tests.support.damage import damaged_proof
from tests.support.proof_trials import PLANS
from tests.support.proofs import BUILT, PROOFS, VERIFIER, files_of_plan, proof_of, write_rules

COQ = pytest.mark.skipif(shutil.which("coqc") is None, reason="needs coqc")
EXTRACTED_BY = "8.16"
"""The version of Coq (of Debian 12) that has written checker.ml: others write other text."""


def copied(folder: Path) -> Path:
    """Copy the sources; returns their folder."""
    sources = folder / "proofs"
    ignored = shutil.ignore_patterns("*.vo*", "*.glob", ".*", "extracted.*", "checker.ml")
    shutil.copytree(PROOFS, sources, ignore=ignored)
    return sources


def make(sources: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    """Run make."""
    return subprocess.run(
        ["make", "-C", sources, *targets],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "MAKEFLAGS": ""},
    )


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of sources with all that Coq makes of them.

    Of another version of Coq than that of Debian 12, the checker is the whole extraction.
    """
    sources = copied(tmp_path_factory.mktemp("coq"))
    is_same = is_coq_of_the_committed_checker()
    done = make(sources, "proof", *(["checker.ml"] if is_same else ["extracted.ml"]))
    assert done.returncode == 0, done.stdout
    if not is_same:
        shutil.copy(sources / "extracted.ml", sources / "checker.ml")
    return sources


def is_coq_of_the_committed_checker() -> bool:
    """Return whether the text of this version's extraction has to be the committed one."""
    done = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=True)
    return f"version {EXTRACTED_BY}." in done.stdout


@COQ
@pytest.mark.deep
def test_the_theorems_assume_nothing(compiled: Path) -> None:
    printed = (compiled / "Proof.assumptions").read_text().splitlines()
    theorems = re.findall(r"^Print Assumptions (\w+)\.", (PROOFS / "Proof.v").read_text(), re.M)
    assert "check_all_sound" in theorems
    assert printed == ["Closed under the global context"] * len(theorems)


@COQ
@pytest.mark.deep
def test_an_assumption_is_found(compiled: Path, tmp_path: Path) -> None:
    sources = tmp_path / "proofs"
    shutil.copytree(compiled, sources)
    text = (sources / "Proof.v").read_text()
    assumed = "Axiom everything_is_safe : forall fab addresses, safe fab addresses.\n"
    statement = re.search(r"Theorem check_all_sound.*?\nProof\.\n", text, re.DOTALL)
    assert statement is not None
    start, end = statement.span()
    proof_end = text.index("Qed.", end)
    changed = f"{text[:start]}{assumed}{text[start:end]}intros. apply everything_is_safe.\n"
    (sources / "Proof.v").write_text(changed + text[proof_end:])
    done = make(sources, "proof")
    assert done.returncode != 0
    assert "everything_is_safe" in done.stdout


@COQ
@pytest.mark.deep
def test_coq_extracts_the_checker_that_is_built(compiled: Path) -> None:
    if is_coq_of_the_committed_checker():
        assert (compiled / "checker.ml").read_text() == (PROOFS / "checker.ml").read_text()
        assert (compiled / "checker.sha256").read_text() == (PROOFS / "checker.sha256").read_text()


@COQ
@BUILT
@pytest.mark.deep
def test_what_coq_extracts_answers_as_the_program_that_is_built(
    compiled: Path, tmp_path: Path
) -> None:
    (compiled.parent / "tools").mkdir()
    script = shutil.copy(REPOSITORY / "tools/verifier.sh", compiled.parent / "tools")
    program = tmp_path / "verifier"
    subprocess.run([script, program], check=True)
    rng = random.Random(1)  # noqa: S311 - it only has to be repeatable
    statuses = set()
    for number, (spec, choices) in enumerate(PLANS):
        folder = write_rules(tmp_path / str(number), files_of_plan(spec, **choices))
        intact = proof_of(folder)
        for proof in [intact, *(damaged_proof(intact, rng)[1] for _ in range(20))]:
            file = tmp_path / "proof"
            file.write_text(proof)
            both = [
                subprocess.run(
                    [one, folder, file],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
                for one in (VERIFIER, program)
            ]
            assert both[0].returncode == both[1].returncode
            assert both[0].stdout == both[1].stdout
            statuses.add(both[0].returncode)
    assert statuses == {0, 1, 2}


@COQ
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=pytest.mark.deep if number % 7 == 0 else pytest.mark.long)
        for number, fault in enumerate(FAULTS)
    ],
    ids=[fault.name for fault in FAULTS],
)
def test_the_proof_fails_for_a_checker_that_accepts_more(
    compiled: Path, tmp_path: Path, fault: Fault
) -> None:
    sources = tmp_path / "proofs"
    shutil.copytree(compiled, sources)
    text = (sources / "Checker.v").read_text()
    assert text.count(fault.old) == 1
    (sources / "Checker.v").write_text(text.replace(fault.old, fault.new))
    done = make(sources, "Checker.vo")
    assert done.returncode == 0, f"the checker itself does not compile: {done.stdout}"
    done = make(sources, "proof")
    assert done.returncode != 0
    assert re.search(r'^File "\./Proof\.v", line \d+', done.stdout, re.MULTILINE), done.stdout


def test_every_fault_is_one_of_the_checker_as_it_is() -> None:
    text = (PROOFS / "Checker.v").read_text()
    for fault in FAULTS:
        assert text.count(fault.old) == 1, fault.name
        assert fault.new != fault.old
