"""Where a switch may choose, a proof is accepted only if each choice is right."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.proofs import (
    BUILT,
    Judgement,
    file_lines,
    files_of_plan,
    judge,
    proof_of,
    write_rules,
)

pytestmark = BUILT
Files = dict[str, str]

LEAF_PORTS = (3, 4, 5, 6)
"""Ports of the first leaf of clos,4,hosts=2 to the spines."""
CHOICE = re.compile(r"move:\S+?\[24\.\.47\],bundle_load\(\S+?members:[0-9,]+\),move:[^,]+,")


@pytest.fixture(scope="module")
def ecmp() -> Files:
    return files_of_plan("clos,4,hosts=2", multipath="ecmp")


def judged(folder: Path, files: Files, change: Callable[[Files], Files]) -> Judgement:
    """Judge changed files by the ranks of the intact ones: paths remain the same."""
    proof = proof_of(write_rules(folder, files)).splitlines()
    write_rules(folder, change(dict(files)))
    head = [line for line in proof if not line.startswith("file ")]
    return judge(folder, "\n".join([*head[:2], *file_lines(folder), *head[2:]]) + "\n")


def by_group(kind: str, buckets: str) -> Callable[[Files], Files]:
    """Return a change: the first leaf chooses by a group in place of a hash."""

    def change(files: Files) -> Files:
        rules, choices = CHOICE.subn("write_metadata:0x63,", files["s1.flows"])
        assert choices > 0
        files["s1.flows"] = rules + "table=3,priority=100,metadata=0x63 actions=group:50\n"
        files["s1.groups"] += f"group_id=50,type={kind},{buckets}\n"
        return files

    return change


def buckets(*actions: str) -> str:
    return ",".join(f"bucket=actions={action}" for action in actions)


@pytest.mark.parametrize("spec", ["clos,4,hosts=2", "fattree2,4", "fattree3,4", "torus,4,4"])
def test_a_hash_may_choose_any_equal_next_hop(tmp_path: Path, spec: str) -> None:
    files = files_of_plan(spec, multipath="ecmp")
    assert any(CHOICE.search(text) for text in files.values())
    folder = write_rules(tmp_path / "rules", files)
    judgement = judge(folder, proof_of(folder))
    assert judgement.accepted, judgement.text
    assert "of several choices" in judgement.text


def test_each_port_of_a_hash_has_to_be_right(tmp_path: Path, ecmp: Files) -> None:
    def change(files: Files) -> Files:
        files["s1.flows"] = files["s1.flows"].replace("members:3,4,5,6", "members:3,4,5,40")
        assert files != ecmp
        return files

    judgement = judged(tmp_path / "rules", ecmp, change)
    assert judgement.status == 1
    assert "the frame reaches nobody, but is for " in judgement.text


def test_a_group_of_type_select_uses_any_bucket(tmp_path: Path, ecmp: Files) -> None:
    up = buckets(*(f"output:{port}" for port in LEAF_PORTS))
    judgement = judged(tmp_path / "rules", ecmp, by_group("select", up))
    assert judgement.accepted, judgement.text


@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [
        ("select", buckets("output:3", "drop"), "the frame reaches nobody, but is for "),
        ("select", buckets("output:3", "output:3,output:4"), r"the frame reaches (h\d), \1, but"),
        ("select", buckets("output:3", "output:2"), "with a VLAN tag"),
        ("select", buckets("output:3", "pop_vlan,pop_vlan,output:3"), "cannot be applied"),
        # All buckets, in place of one of them.
        ("all", buckets("output:3", "output:4"), r"the frame reaches (h\d), \1, but is for "),
        ("ff", buckets("output:3"), "a bucket that is not covered"),
    ],
)
def test_each_bucket_has_to_be_right(
    tmp_path: Path, ecmp: Files, kind: str, content: str, reason: str
) -> None:
    judgement = judged(tmp_path / "rules", ecmp, by_group(kind, content))
    assert judgement.status == (2 if kind == "ff" else 1)
    assert re.search(reason, judgement.text), judgement.text


@pytest.mark.parametrize(
    ("other", "accepted"), [("write_metadata:0x4,goto_table:2", True), ("drop", False)]
)
def test_of_rules_of_one_priority_any_may_count(
    tmp_path: Path, ecmp: Files, other: str, accepted: bool
) -> None:
    def change(files: Files) -> Files:
        rules = files["s1.flows"].splitlines()
        matches = [rule.split(" ")[0] for rule in rules if CHOICE.search(rule)]
        rules = [CHOICE.sub("write_metadata:0x3,", rule) for rule in rules]
        twins = [f"{match} actions={other}" for match in matches]
        assert twins
        files["s1.flows"] = "\n".join([*rules, *twins]) + "\n"
        return files

    judgement = judged(tmp_path / "rules", ecmp, change)
    assert judgement.accepted is accepted, judgement.text
