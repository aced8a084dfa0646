"""Proofs of 802.1Q switches: their form, what is written, and what they do not cover."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.errors import ProofError
from knotless.cli.main import main
from knotless.forwarding.dot1q.files import read_files
from knotless.forwarding.dot1q.state import state_of_dot1q
from knotless.verification.bridge_proof import bridge_proof
from knotless.verification.check import verdict_of
from tests.support.bridge_trials import files_of_bridges, proof_of_product
from tests.support.proofs import VERIFIER, judge, run, write_rules

CUBE = r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}/(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"
MAC = r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"
HEAD = (
    r"knotless-proof 3\nflow-control (?:pause|pfc)\n(?:tags any\n)?(?:sources any\n)?"
    r"(?:file (?:fabric\.json|[\w-]+\.bridge) [0-9a-f]{64}\n)+"
)
QUEUE = r"[\w-]+:\d+/0"
SAFE = re.compile(
    rf"{HEAD}claim safe\nbound \d+\n(?:rank {QUEUE} \d+\n)*"
    rf"(?:class {CUBE}(?: but(?: {CUBE})+)?\n)+"
)
CYCLE = re.compile(
    rf"{HEAD}claim cycle\n"
    rf"(?:wait {QUEUE} {QUEUE} [\w-]+ {MAC} {MAC}\nvia [\w-]+(?: [\w-]+:\d+)+\n)+"
)


def test_the_form_of_both_claims() -> None:
    for engine, form in (("updown", SAFE), ("dor", CYCLE)):
        proof = proof_of_product(files_of_bridges("ring,6", engine))
        assert form.fullmatch(proof), proof


def exported(scratch: Path, arguments: str) -> tuple[int, str]:
    """Run ``knotless export`` with a proof; returns the status and what it prints."""
    words = ["export", *arguments.split(), "--proof", str(scratch / "proof")]
    done = CliRunner(mix_stderr=False).invoke(main, [*words, "--out", str(scratch / "out")])
    return done.exit_code, done.stdout + done.stderr


def test_export_writes_a_proof_beside_the_tables(tmp_path: Path) -> None:
    status, text = exported(tmp_path, "mesh,3,3 --engine dor --to l2")
    assert status == 0, text
    assert f"proof: {tmp_path / 'proof'}" in text
    assert "not covered: frames that hosts send with tags (see s" in text
    if VERIFIER.exists():
        judgement = run(tmp_path / "out", tmp_path / "proof")
        assert judgement.accepted, judgement.text


def test_export_names_the_proof_in_json(tmp_path: Path) -> None:
    status, text = exported(tmp_path, "ring,4 --to l2 --json")
    assert status == 0, text
    assert json.loads(text)["proof"] == str(tmp_path / "proof")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            "ring,6 --engine lturn --tagging host --to l2",
            "proofs do not cover hosts that tag their frames",
        ),
        ("ring,4 --to frr", "--proof needs --to l2; for routers: knotless check"),
    ],
)
def test_what_proofs_do_not_cover_is_named_and_nothing_is_written(
    tmp_path: Path, arguments: str, reason: str
) -> None:
    status, text = exported(tmp_path, arguments)
    assert status != 0
    assert reason in text
    assert not [*tmp_path.iterdir()]


def test_tables_that_do_not_deliver_are_not_proven() -> None:
    files = files_of_bridges("ring,4", "updown")
    files["s1.bridge"] = files["s1.bridge"].replace(" pvid untagged", " untagged")
    with pytest.raises(ProofError, match="such a proof says that all is delivered"):
        proof_of_product(files)


def test_hosts_that_tag_are_covered_where_no_tag_can_close_a_cycle(tmp_path: Path) -> None:
    status, text = exported(tmp_path, "mesh,3,3 --engine updown --tagging host --to l2")
    assert status == 0, text
    assert (tmp_path / "out/tags.json").exists()
    assert "not covered" not in text
    assert "\ntags any\n" in (tmp_path / "proof").read_text()
    if VERIFIER.exists():
        judgement = run(tmp_path / "out", tmp_path / "proof")
        assert judgement.accepted, judgement.text
        assert "with any tags" in judgement.text


def test_tags_are_not_covered_where_links_have_none(tmp_path: Path) -> None:
    """A switch of 802.1Q then goes by the tag below, of which the checker knows nothing."""
    files = files_of_bridges("fattree,2,4,2", "smodk")
    assert "\ntags any\n" in proof_of_product(files)
    old = "vlan add dev s1-eth4 vid 5\n"
    assert old in files["s1.bridge"]
    files["s1.bridge"] = files["s1.bridge"].replace(old, f"{old[:-1]} untagged\n")
    proof = proof_of_product(files)
    assert "\nflow-control pause\nsources any\nfile " in proof
    folder = write_rules(tmp_path / "bridges", files)
    assert not VERIFIER.exists() or judge(folder, proof).accepted


def test_links_that_lose_are_not_covered() -> None:
    files = files_of_bridges("ring,4", "updown")
    read = read_files(files, ".bridge")
    state = state_of_dot1q(read)
    with pytest.raises(ProofError, match="they cover pause, pfc and credits"):
        bridge_proof(files, read, state, verdict_of(state, "none"))
