"""802.1Q switches: what ``knotless-verify`` accepts and refuses, and what it says then."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.bridge_folders import BridgeFolder
from tests.support.bridge_trials import (
    files_of_bridges,
    first_with,
    proof_of_product,
    trial_of_bridges,
    trial_of_cyclic_bridges,
    trial_of_scripts,
)
from tests.support.proof_trials import with_files_of
from tests.support.proofs import BUILT, Judgement, file_lines, judge, run, write_rules

pytestmark = BUILT


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, str]:
    files = files_of_bridges("ring,4", "updown")
    return write_rules(tmp_path / "bridges", files), proof_of_product(files)


def edited(folder: Path, name: str, old: str, new: str) -> None:
    """Replace the first occurrence of a text in a file."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def judged(folder: Path, proof: str) -> Judgement:
    """Judge the files as they are now with the evidence of a proof."""
    return judge(folder, with_files_of(proof, folder))


def test_safe_scripts_are_accepted_with_the_theorem_and_what_it_assumes(
    written: tuple[Path, str],
) -> None:
    folder, proof = written
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement.text
    assert judgement.text.startswith("accepted: the fabric cannot deadlock under PAUSE\n")
    assert "check_all_any_sound" in judgement.text
    assert "every frame that a host can send, untagged,\nfrom any source" in judgement.text
    static = len(BridgeFolder(folder).static)
    assert f"4 switches, 4 hosts, {static} static addresses in 5 files" in judgement.text
    assert "they learn nothing" in judgement.text
    assert "OpenFlow" not in judgement.text


def test_a_cycle_is_replayed_from_the_scripts(tmp_path: Path) -> None:
    files = files_of_bridges("ring,6", "dor")
    folder = write_rules(tmp_path / "bridges", files)
    judgement = judge(folder, proof_of_product(files))
    assert judgement.replayed, judgement.text
    assert judgement.text.count(" it waits for ") == 6


def test_frames_to_unknown_addresses_flood_their_vlan(written: tuple[Path, str]) -> None:
    """A frame that floods arrives too, but elsewhere as well; one to nobody may go anywhere."""
    folder, proof = written
    fabric = BridgeFolder(folder)
    vlan = fabric.pvid["s1", 1]
    device = next(
        f"s1-eth{port}"
        for (switch, of_vlan, mac), port in fabric.static.items()
        if (switch, of_vlan, mac) == ("s1", vlan, fabric.address["h3"])
    )
    line = f"fdb replace {fabric.address['h3']} dev {device} master static vlan {vlan}\n"
    edited(folder, "s1.bridge", line, "")
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert "the frame reaches" in judgement.text
    assert "is for h3" in judgement.text
    of_nobody = line.replace(fabric.address["h3"], "06:00:00:00:00:01")
    edited(folder, "s1.bridge", "\nfdb ", f"\n{of_nobody}{line}fdb ")
    files = {path.name: path.read_text() for path in folder.iterdir()}
    judgement = judge(folder, proof_of_product(files))
    assert judgement.accepted, judgement.text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" pvid untagged", " untagged", "reaches nobody"),
        ("vid 2 pvid untagged", "vid 2 pvid", "the frame reaches h1 with a VLAN tag"),
    ],
)
def test_a_refusal_says_what_happens(
    written: tuple[Path, str], old: str, new: str, reason: str
) -> None:
    folder, proof = written
    edited(folder, "s1.bridge", old, new)
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert reason in judgement.text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("stp_state 0", "stp_state 1", "stp_state 0 mcast_snooping 0 is expected"),
        ("vlan_filtering 1", "vlan_filtering 0", "vlan_filtering 1 stp_state"),
        ("link set dev s1-eth2 learning off\n", "", "port 2 learns addresses"),
        ("learning off", "learning on", "a command that is not covered: link set"),
        ("master static", "master dynamic", "a command that is not covered: fdb"),
        ("link set dev s1-eth2 up\n", "", "port 2 is never brought up"),
        ("link set dev s1 up\n", "", "s1 is never brought up"),
        ("link set dev s1-eth1 up\n", "link set dev s1-eth1 down\n", "not covered"),
        ("vlan del dev s1-eth1 vid 1\n", "", "a second PVID"),
        ("dev s1-eth1 learning", "dev s1-eth9 learning", "fabric.json has no port 9 of s1"),
        ("dev s1-eth1 learning", "dev s1-eth01 learning", "not a port: s1-eth01"),
        ("dev s1-eth1 learning", "dev s2-eth1 learning", "the ports of s1 are s1-ethN"),
        ("vid 2 pvid untagged", "vid 4095 pvid untagged", "out of range: 4095"),
        ("vid 2 pvid untagged", "vid 0 pvid untagged", "not a VLAN: 0"),
        ("vid 2 pvid untagged", "vid 2 untagged pvid", "not a membership"),
        ("vid 2 pvid untagged", "vid 2 pvid untagged\nvlan add dev s1-eth1 vid 2", "occurs twice"),
        ("02:00:00:00:01:01 dev", "02:00:00:00:01 dev", "not an address"),
        ("02:00:00:00:01:01 dev", "ff:ff:ff:ff:ff:ff dev", "the address of a group"),
        ("static vlan 2", "static vlan 9", "is not in VLAN 9"),
        ("\nEND\nip", "\nvlan del dev s1-eth1 vid 2\nEND\nip", "follow all memberships"),
        ("up\nEND\n", "up\nEND\nreboot\n", "more commands"),
        ("up\nEND\n", "up\n", "it ends early"),
    ],
)
def test_scripts_that_configure_something_else_are_not_read(
    written: tuple[Path, str], old: str, new: str, reason: str
) -> None:
    folder, proof = written
    edited(folder, "s1.bridge", old, new)
    judgement = judged(folder, proof)
    assert judgement.status == 2
    assert judgement.text.startswith("knotless-verify: s1.bridge")
    assert reason in judgement.text


def test_an_address_at_two_ports_is_not_read(written: tuple[Path, str]) -> None:
    folder, proof = written
    text = (folder / "s1.bridge").read_text()
    line = next(line for line in text.splitlines() if line.startswith("fdb "))
    edited(folder, "s1.bridge", f"{line}\n", f"{line}\n{line.upper().lower()}\n")
    judgement = judged(folder, proof)
    assert judgement.status == 2
    assert "an address occurs twice in a VLAN" in judgement.text


def test_steps_failures_and_tags_of_hosts_are_not_covered(written: tuple[Path, str]) -> None:
    folder, proof = written
    refused = "knotless-verify: refused: "
    assert judge(folder, f"{proof}failure switch s1\n") == (
        1,
        f"{refused}of 802.1Q switches failures are not covered\n",
    )
    head, claim, evidence = proof.partition("claim safe\n")
    both = folder.parent / "both"
    both.write_text("\n".join([f"{head}then", *file_lines(folder), f"{claim}{evidence}"]))
    assert run(folder, folder, both) == (
        1,
        f"{refused}a proof of 802.1Q switches is of one folder\n",
    )
    (folder / "tags.json").write_text("{}")
    assert "hosts tag their frames" in judge(folder, proof).text


def test_hosts_that_tag_can_close_a_cycle_or_not(tmp_path: Path, written: tuple[Path, str]) -> None:
    files = files_of_bridges("fattree,2,4,2", "smodk")
    folder, proof = write_rules(tmp_path / "tree", files), proof_of_product(files)
    assert "\ntags any\nsources any\n" in proof
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement.text
    (folder / "tags.json").write_text("{}")  # on which nothing depends
    assert judge(folder, proof).accepted
    folder, proof = written
    assert "\nflow-control pause\nsources any\n" in proof
    judgement = judge(folder, proof.replace("sources any\n", "sources any\ntags any\n"))
    assert judgement.status == 1
    assert "can wait for" in judgement.text


def test_a_tag_of_vlan_0_is_one_of_the_pvid(tmp_path: Path) -> None:
    """Such frames keep their priority, which has to pause."""
    files = files_of_bridges("flat,4", "updown")
    folder = write_rules(tmp_path / "flat", files)
    proof = proof_of_product(files).replace("flow-control pause", "flow-control pfc")
    assert judge(folder, proof).accepted
    lossless = proof.replace("\nsources any", "\nsources any\nlossless 0-6")
    judgement = judge(folder, lossless)
    assert judgement.status == 1
    assert "priority 7 does not pause" in judgement.text
    assert judge(folder, lossless.replace("tags any\n", "")).accepted
    rule = r"in_port 0x1/0xffffffff .*vlan_vid 0x1000/0x1fff .* actions \[vid:4098\] "
    assert re.search(rule, run("--print", folder).text)


def test_no_file_may_be_missing_or_of_another_kind(written: tuple[Path, str]) -> None:
    folder, proof = written
    text = (folder / "s1.bridge").read_text()
    (folder / "s1.bridge").unlink()
    assert "s1.bridge is missing: what s1 holds is not known" in judged(folder, proof).text
    (folder / "s1.bridge").write_text(text)
    (folder / "s1.flows").write_text("")
    assert "s1.flows: fabric.json has no such switch" in judged(folder, proof).text


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, str]]:
    rng = random.Random(7)  # noqa: S311 - it only has to be repeatable
    return [first_with("safe", tmp_path_factory.mktemp("safe"), rng) for _ in range(6)]


@pytest.mark.seeds(100, gate=12)
def test_verdicts_on_scripts_are_accepted_or_replayed(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    claim, _, _ = trial_of_bridges(tmp_path, rng)
    others = ("not read", "not written: such a proof says that all")
    assert claim in ("safe", "cycle") or claim.startswith(others)


@pytest.mark.seeds(300, gate=40)
def test_damaged_scripts_are_accepted_if_and_only_if_they_are_right(
    tmp_path: Path, safe: list[tuple[Path, str]], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    folder, proof = rng.choice(safe)
    trial_of_scripts(folder, proof, tmp_path / "damaged", rng)


def test_some_damaged_scripts_are_right_and_many_are_not(
    tmp_path: Path, safe: list[tuple[Path, str]]
) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(70):
        rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
        outcomes[trial_of_scripts(*rng.choice(safe), tmp_path / "damaged", rng)] += 1
    assert outcomes["refused, and wrong"] > 10
    assert outcomes["accepted with the old evidence"] > 1


@pytest.mark.seeds(40, gate=4)
def test_no_proof_is_accepted_for_scripts_that_can_deadlock(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    assert trial_of_cyclic_bridges(*first_with("cycle", tmp_path, rng), rng) > 4
