"""Proofs about all frames that hosts can send: with any tags, and from any address."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.support.frame_trials import (
    SOURCES,
    TAGS,
    trial_of_frames,
    unsafe_frames,
    with_frames,
)
from tests.support.proof_trials import PLANS
from tests.support.proofs import (
    BUILT,
    files_of_plan,
    judge,
    proof_of,
    proof_of_product,
    write_rules,
)

pytestmark = BUILT
Files = dict[str, str]
TRUSTED_VLAN = 5
CLOCKWISE = 2
"""The port to the next switch of ring,4; port 1 has the host."""


def mac(switch: int) -> str:
    return f"02:00:00:00:{switch:02x}:01"


def clockwise_in_a_vlan(switches: range = range(1, 5)) -> Files:
    """Return rules that forward untagged frames on a tree, and those of one VLAN round a ring.

    Some switches admit frames of this VLAN from their host.
    """
    files = files_of_plan("ring,4", engine="updown")
    for number in range(1, 5):
        head = "cookie=0x6b6e6f74,table=0,priority=300"
        vid = f"vlan_vid={0x1000 + TRUSTED_VLAN:#x}"
        rules = [f"{head},eth_dst={mac(number)},{vid} actions=pop_vlan,output:1"]
        for to in {1, 2, 3, 4} - {number}:
            for port in (1, 3) if number in switches else (3,):
                match = f"in_port={port},eth_dst={mac(to)},{vid}"
                rules.append(f"{head},{match} actions=output:{CLOCKWISE}")
        files[f"s{number}.flows"] += "".join(f"{rule}\n" for rule in rules)
    return files


@pytest.fixture
def clockwise(tmp_path: Path) -> Path:
    return write_rules(tmp_path / "rules", clockwise_in_a_vlan())


@pytest.mark.parametrize(("spec", "choices"), PLANS, ids=[spec for spec, _ in PLANS])
def test_proofs_of_plans_are_about_all_frames(
    tmp_path: Path, spec: str, choices: dict[str, object]
) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan(spec, **choices))
    proof = proof_of_product(folder)
    assert {TAGS, SOURCES} < set(proof.splitlines())
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement
    subject = "every frame that a host can send, with any tags,\nfrom any source, to any of the"
    assert subject in judgement.text
    assert "(check_all_any_sound)" in judgement.text
    assert "(check_all_sound), if hosts send untagged frames" in judgement.text
    rng = random.Random(spec)  # noqa: S311 - it only has to be repeatable
    assert not unsafe_frames(folder, [1], proof, rng, most=1000)


@pytest.mark.parametrize(
    ("lines", "subject"),
    [
        ((), "every frame that a host sends untagged, from its own\naddress, to any"),
        ((TAGS,), "with any tags,\nfrom its own address, to any"),
        ((SOURCES,), "untagged,\nfrom any source, to any"),
    ],
)
def test_a_conclusion_names_the_frames(
    tmp_path: Path, lines: tuple[str, ...], subject: str
) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan("ring,4", engine="updown"))
    judgement = judge(folder, with_frames(proof_of(folder), *lines))
    assert judgement.accepted
    assert subject in judgement.text


def test_a_host_closes_a_cycle_by_the_vlan_that_it_chooses(clockwise: Path) -> None:
    untagged = proof_of_product(clockwise, "pause")
    assert TAGS not in untagged
    assert judge(clockwise, untagged).accepted
    rng = random.Random(1)  # noqa: S311 - it only has to be repeatable
    assert unsafe_frames(clockwise, [], untagged, rng) == ""
    tagged = with_frames(untagged, TAGS)
    assert unsafe_frames(clockwise, [], tagged, rng, most=10_000) == "a cycle"
    judgement = judge(clockwise, tagged)
    assert judgement.status == 1
    assert re.search(
        r"from h\d with a tag \(VLAN 5, priority \d\): s\d\.flows:\d+: a frame in s\d:2/0"
        r" \(rank \d+\) can wait for s\d:2/0",
        judgement.text,
    ), judgement


def test_a_vlan_that_no_host_may_use_harms_nobody(tmp_path: Path) -> None:
    folder = write_rules(tmp_path / "rules", clockwise_in_a_vlan(range(0)))
    proof = proof_of_product(folder, "pause")
    assert judge(folder, with_frames(proof, TAGS)).accepted
    rng = random.Random(1)  # noqa: S311 - it only has to be repeatable
    assert unsafe_frames(folder, [], with_frames(proof, TAGS), rng, most=10_000) == ""


def cycle_of(folder: Path, *lines: str, tag: str = f" {TRUSTED_VLAN}/3") -> str:
    """Return the proof that frames from each host, two switches on, wait for each other."""
    head = [line for line in proof_of(folder, "pause").splitlines() if " " in line][:20]
    waits = []
    for a in range(1, 5):
        b, c = a % 4 + 1, (a + 1) % 4 + 1
        waits += [f"wait s{a}:2/0 s{b}:2/0 h{a} {mac(c)} {mac(a)}{tag}", f"via h{a} s{a}:2 s{b}:2"]
    end = next(n for n, line in enumerate(head) if line.startswith("claim "))
    return with_frames("\n".join([*head[:end], "claim cycle", *waits]) + "\n", *lines)


def test_a_cycle_of_tagged_frames_is_replayed(clockwise: Path) -> None:
    judgement = judge(clockwise, cycle_of(clockwise, TAGS))
    assert judgement.replayed, judgement
    assert "a frame from h1 to 02:00:00:00:03:01 (tagged: VLAN 5, priority 3) by h1 s1:2 s2:2" in (
        judgement.text
    )
    for proof, reason in (
        (cycle_of(clockwise), "h1 sends no tags"),
        (cycle_of(clockwise, SOURCES), "h1 sends no tags"),
        (cycle_of(clockwise, TAGS, tag=" 6/3"), "rules do not send frames of h1"),
        (cycle_of(clockwise, TAGS, tag=""), "rules do not send frames of h"),
    ):
        judgement = judge(clockwise, proof)
        assert (judgement.status, judgement.replayed) == (1, False)
        assert reason in judgement.text, judgement
    assert judge(clockwise, cycle_of(clockwise, TAGS, tag=" 4096/3")).status == 2


def test_a_forged_source_is_one_of_its_own_proof(tmp_path: Path) -> None:
    """Rules of which each trusts its port send frames from another's address round the ring."""
    files = files_of_plan("ring,4", engine="updown")
    forged = "0e:00:00:00:00:01"
    for number in range(1, 5):
        head = f"cookie=0x6b6e6f74,table=0,priority=300,eth_src={forged}"
        rules = [f"{head},eth_dst={mac(number)} actions=output:1"]
        for to in {1, 2, 3, 4} - {number}:
            rules.append(f"{head},eth_dst={mac(to)} actions=output:{CLOCKWISE}")
        files[f"s{number}.flows"] += "".join(f"{rule}\n" for rule in rules)
    folder = write_rules(tmp_path / "rules", files)
    proof = proof_of_product(folder, "pause")
    assert SOURCES not in proof
    assert judge(folder, proof).accepted
    judgement = judge(folder, with_frames(proof, SOURCES))
    assert judgement.status == 1
    assert re.search(rf"from h\d with the source {forged}: .* can wait for s\d:2/0", judgement.text)
    rng = random.Random(1)  # noqa: S311 - it only has to be repeatable
    assert unsafe_frames(folder, [], with_frames(proof, SOURCES), rng, most=10_000) == "a cycle"


def test_tags_below_the_first_one_are_any(tmp_path: Path) -> None:
    files = files_of_plan("ring,4", engine="updown")
    files["s1.flows"] += (
        "cookie=0x6b6e6f74,table=0,priority=300,in_port=1,vlan_vid=0x1007"
        " actions=pop_vlan,goto_table:1\n"
    )
    folder = write_rules(tmp_path / "rules", files)
    proof = proof_of_product(folder)
    assert judge(folder, proof).accepted
    judgement = judge(folder, with_frames(proof, TAGS))
    assert judgement.status == 1
    assert "whose tags have been removed" in judgement.text


def test_all_priorities_have_to_pause_that_hosts_may_choose(tmp_path: Path) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan("torus,5", engine="dor"))
    proof = proof_of(folder).replace("flow-control pfc\n", "flow-control pfc\nlossless 0-1\n")
    assert judge(folder, with_frames(proof, SOURCES)).accepted
    judgement = judge(folder, with_frames(proof, TAGS))
    assert judgement == (1, "knotless-verify: refused: priority 2 does not pause\n")


@pytest.mark.parametrize("lines", [(TAGS, TAGS), ("tags none",), ("sources own",), ("tags",)])
def test_lines_about_frames_that_have_no_meaning_are_not_read(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan("ring,4", engine="updown"))
    judgement = judge(folder, with_frames(proof_of(folder), *lines))
    assert judgement.status == 2
    assert "not a line of the header" in judgement.text


@pytest.mark.seeds(100, gate=20)
def test_frames_that_proofs_are_about_are_safe(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    spec, choices = rng.choice(PLANS)
    trial_of_frames(files_of_plan(spec, **choices), tmp_path / "rules", rng)
