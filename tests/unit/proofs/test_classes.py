"""Classes of destinations may be as large as a proof likes: the checker divides them."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.verification.address_classes import Cube
from tests.support.proofs import (
    BUILT,
    class_lines,
    file_lines,
    files_of_plan,
    judge,
    proof_of,
    proof_of_product,
    write_rules,
)

pytestmark = BUILT
RESERVED = Cube(0x0180C2000000, 0xFFFFFFFFFFF0)
"""Addresses that no switch forwards."""


def with_large_classes(folder: Path) -> str:
    """Return a proof with one class for all addresses but those of groups."""
    lines = [line for line in proof_of(folder).splitlines() if not line.startswith("class ")]
    return "\n".join([*lines, *class_lines({RESERVED}, set())]) + "\n"


def with_files_of(proof: str, folder: Path) -> str:
    """Return a proof that names the files as they are now."""
    lines = [line for line in proof.splitlines() if not line.startswith("file ")]
    return "\n".join([*lines[:2], *file_lines(folder), *lines[2:]]) + "\n"


@pytest.mark.parametrize(
    "spec", ["ring,4,hosts=2", "torus,4,4,hosts=2", "fattree3,4", "clos,4,hosts=2", "mesh,3,3"]
)
def test_a_class_that_rules_divide_is_followed_in_parts(tmp_path: Path, spec: str) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan(spec))
    proof = with_large_classes(folder)
    assert proof.count("\nclass 00:") == 1
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement.text


def test_hosts_are_one_class_where_each_switch_tests_few_of_the_patterns(tmp_path: Path) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan("torus,12,12"))
    proof = proof_of_product(folder)
    assert proof.count("\nclass ") == 4
    assert proof.count("\nclass 02:") == 1
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement.text


def test_addresses_far_from_those_of_hosts_are_few_classes(tmp_path: Path) -> None:
    """Rules of backups test bits of addresses that no host has as well."""
    files = files_of_plan("mesh,3,3", protection="fast-failover")
    folder = write_rules(tmp_path / "rules", files)
    proof = proof_of_product(folder)
    lines = [line for line in proof.splitlines() if line.startswith("class ")]
    assert len(lines) < 80
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement.text
    for line in lines[::7]:
        without = proof.replace(f"{line}\n", "", 1)
        assert "not cover all addresses" in judge(folder, without).text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        # Both hosts of the switch take what is for the other one.
        (
            ("output:1", "output:2"),
            ("output:2", "output:1"),
            "from h1: the frame reaches nobody, but is for h2",
        ),
        (("pop_vlan,output:2",), ("drop",), "the frame reaches nobody, but is for h2"),
        (("pop_vlan,output:2",), ("pop_vlan,output:1,output:2",), "reaches h1, h2, but is for h2"),
    ],
)
def test_each_host_of_a_large_class_has_to_get_its_own_frames(
    tmp_path: Path, old: tuple[str, ...], new: tuple[str, ...], reason: str
) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan("torus,4,4,hosts=2"))
    proof = with_large_classes(folder)
    file = folder / "s1.flows"
    changed = []
    for line in file.read_text().splitlines():
        pairs = [(a, b) for a, b in zip(old, new, strict=True) if line.endswith(a)]
        changed.append(line.replace(*pairs[0]) if pairs else line)
    assert changed != file.read_text().splitlines()
    file.write_text("\n".join(changed) + "\n")
    judgement = judge(folder, with_files_of(proof, folder))
    assert judgement.status == 1
    assert reason in judgement.text


def test_a_source_that_rules_tell_from_others_behind_the_first_switch_is_followed_alone(
    tmp_path: Path,
) -> None:
    """One host is cut off from another one, so that nothing but its own frames shows it."""
    folder = write_rules(tmp_path / "rules", files_of_plan("ring,4,hosts=2"))
    intact = with_large_classes(folder)
    assert judge(folder, intact).accepted
    fabric = files_of_plan("ring,4,hosts=2")["s1.flows"]
    sources = [part for part in fabric.split() if "eth_src=" in part]
    source = next(f for f in sources[0].split(",") if f.startswith("eth_src="))
    file = folder / "s3.flows"
    file.write_text(f"table=1,priority=60000,{source} actions=drop\n" + file.read_text())
    judgement = judge(folder, with_files_of(intact, folder))
    assert judgement.status == 1
    assert " from h1: the frame reaches " in judgement.text
