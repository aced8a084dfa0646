"""Rules that test fields which frames do not have in proofs: they may match, or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.frame_trials import SOURCES, TAGS
from tests.support.proofs import (
    BUILT,
    files_of_plan,
    judge,
    proof_of,
    proof_of_product,
    run,
    write_rules,
)

pytestmark = BUILT
Files = dict[str, str]
HEAD = "cookie=0x6b6e6f74,table=1,priority=400,in_port=3,vlan_vid=0x1002"
"""Of frames that come to a switch of ring,4 from the one before."""


@pytest.fixture
def ring() -> Files:
    return files_of_plan("ring,4", engine="updown", root="s1")


def ranks_only(folder: Path) -> str:
    """Return a proof that does not claim delivery."""
    return proof_of(folder).replace("claim safe", "claim deadlock-free")


@pytest.mark.parametrize(
    ("spec", "choices"),
    [
        ("ring,4", {"engine": "updown", "source_check": "ip"}),
        ("torus,3,3", {"engine": "dor", "source_check": "arp"}),
        ("random,6,degree=3,hosts=1,seed=4", {"engine": "lash", "source_check": "ip"}),
    ],
)
def test_plans_that_check_sources_inside_of_frames(
    tmp_path: Path, spec: str, choices: dict[str, object]
) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan(spec, **choices))
    proof = proof_of_product(folder)
    assert {"claim deadlock-free", TAGS, SOURCES} < set(proof.splitlines())
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement
    assert "rule that tests other fields, such as the EtherType, may match or not" in judgement.text
    judgement = judge(folder, proof.replace("deadlock-free", "safe"))
    assert judgement.status == 1
    assert re.search(
        r"reaches nobody, but is for h\d+ \(s\d+\.flows:\d+: dropped\)", judgement.text
    )


def test_a_rule_that_may_match_may_drop(tmp_path: Path, ring: Files) -> None:
    ring["s2.flows"] += f"{HEAD},eth_type=0x800,nw_dst=10.0.0.0/255.0.0.0 actions=drop\n"
    folder = write_rules(tmp_path / "rules", ring)
    assert judge(folder, ranks_only(folder)).accepted
    judgement = judge(folder, proof_of(folder))
    assert judgement.status == 1
    assert "dropped" in judgement.text


def test_a_rule_that_may_match_may_send(tmp_path: Path, ring: Files) -> None:
    """Each switch sends some frames to the next one, all around the ring."""
    intact = proof_of(write_rules(tmp_path / "intact", ring))
    for number in range(1, 5):
        ring[f"s{number}.flows"] += f"{HEAD},eth_type=0x800 actions=output:2\n"
    folder = write_rules(tmp_path / "rules", ring)
    judgement = judge(folder, ranks_only(folder))
    assert judgement.status == 1
    assert "can wait for" in judgement.text
    assert intact != ranks_only(folder)


def test_a_rule_that_may_match_hides_none_below(tmp_path: Path, ring: Files) -> None:
    """A rule that drops some frames lies over one that sends all around the ring."""
    for number in range(1, 5):
        ring[f"s{number}.flows"] += (
            f"{HEAD.replace('400', '410')},eth_type=0x800 actions=drop\n{HEAD} actions=output:2\n"
        )
    folder = write_rules(tmp_path / "rules", ring)
    assert judge(folder, ranks_only(folder)).status == 1
    certain = {name: text.replace(",eth_type=0x800", "") for name, text in ring.items()}
    folder = write_rules(tmp_path / "certain", certain)
    assert judge(folder, ranks_only(folder)).accepted


def test_two_rules_that_may_match_and_do_the_same_are_no_certain_one(
    tmp_path: Path, ring: Files
) -> None:
    for number in range(1, 5):
        for priority in (410, 411):
            ring[f"s{number}.flows"] += (
                f"{HEAD.replace('400', str(priority))},eth_type={0x7FF + priority} actions=drop\n"
            )
        ring[f"s{number}.flows"] += f"{HEAD} actions=output:2\n"
    folder = write_rules(tmp_path / "rules", ring)
    assert judge(folder, ranks_only(folder)).status == 1


def test_what_is_read_says_so(tmp_path: Path, ring: Files) -> None:
    ring["s2.flows"] += f"{HEAD},eth_type=0x806,arp_spa=10.0.0.1 actions=drop\n"
    text = run("--print", write_rules(tmp_path / "rules", ring)).text
    [line] = [line for line in text.splitlines() if " more true " in line]
    assert line.startswith("rule s2 table 1 priority 400 in_port 0x3/0xffffffff ")


def test_a_cycle_of_frames_of_one_type_is_replayed(tmp_path: Path, ring: Files) -> None:
    for number in range(1, 5):
        for to in {1, 2, 3, 4} - {number}:
            match = f"eth_type=0x88b5,eth_dst=02:00:00:00:{to:02x}:01,vlan_vid=0x1002"
            ring[f"s{number}.flows"] += (
                f"cookie=0x6b6e6f74,table=1,priority=400,{match} actions=output:2\n"
            )
    folder = write_rules(tmp_path / "rules", ring)
    judgement = judge(folder, proof_of_product(folder, "pause"))
    assert judgement.replayed, judgement
    assert "whether rules that test other fields, such as the EtherType, match" in judgement.text
