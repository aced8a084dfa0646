"""InfiniBand subnets: what ``knotless-verify`` accepts and refuses, and what it says then."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.support.infiniband_dumps import Subnet, of_plan
from tests.support.proof_trials import with_files_of
from tests.support.proofs import BUILT, Judgement, file_lines, judge, run
from tests.support.subnet_damage import CHANGES
from tests.support.subnet_folders import SubnetFolder
from tests.support.subnet_trials import add_switch_lids, first_with, proven

pytestmark = BUILT


def subnet(spec: str, engine: str, *, lanes: bool = True) -> Subnet:
    """Return the subnet of a plan, in which switches have LIDs as well."""
    made = of_plan(make_plan(load(spec), engine))
    assert made is not None
    if not lanes:
        made.sl2vl, made.path_sls = {}, {}
    add_switch_lids(made, random.Random(1))  # noqa: S311 - it only has to be repeatable
    return made


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, str]:
    tree = subnet("ring,4", "updown", lanes=False)
    return proven(tree.write(tmp_path / "net"), tmp_path / "proof")


@pytest.fixture
def with_lanes(tmp_path: Path) -> tuple[Path, str]:
    return proven(subnet("ring,5", "dor").write(tmp_path / "lanes"), tmp_path / "other")


def edited(folder: Path, name: str, old: str, new: str) -> None:
    """Replace the first occurrence of a text in a file."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def judged(folder: Path, proof: str) -> Judgement:
    """Judge the files as they are now with the evidence of a proof."""
    return judge(folder, with_files_of(proof, folder))


def test_a_safe_subnet_is_accepted_with_the_theorem_and_what_it_assumes(
    written: tuple[Path, str], with_lanes: tuple[Path, str]
) -> None:
    judgement = judge(*written)
    assert judgement.accepted, judgement.text
    assert judgement.text.startswith("accepted: the subnet cannot deadlock under credits\n")
    assert "check_sound" in judgement.text
    assert "Judged: 4 switches, 4 hosts with 4 LIDs, 32 entries in 5 files" in judgement.text
    assert "all packets are in virtual lane 0" in judgement.text
    judgement = judge(*with_lanes)
    assert judgement.accepted, judgement.text
    assert "packets keep their SL" in judgement.text


def test_lanes_keep_packets_apart(with_lanes: tuple[Path, str]) -> None:
    """A ring whose packets change to another lane once cannot deadlock; in one lane it can."""
    folder, proof = with_lanes
    assert "/1 " in proof
    for file in folder.glob("*.lft"):
        lines = file.read_text().splitlines()
        file.write_text("".join(f"{line}\n" for line in lines if not line.startswith(("s", "f"))))
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert "can wait for" in judgement.text
    assert SubnetFolder(folder).fault() == "a cycle"


def test_a_cycle_is_replayed_from_the_tables(tmp_path: Path) -> None:
    folder, proof = proven(
        subnet("ring,5", "dor", lanes=False).write(tmp_path / "net"), tmp_path / "proof"
    )
    judgement = judge(folder, proof)
    assert judgement.replayed, judgement.text
    assert re.search(r"a frame from (\S+) to 0x000\d by \1 (\S+) ", judgement.text)
    line = next(line for line in proof.splitlines() if line.startswith("via "))
    other = proof.replace(line, " ".join([*line.split()[:-1], line.split()[2]]), 1)
    assert "rules do not send frames of" in judge(folder, other).text
    other = re.sub(r"(wait \S+)/0", r"\1/1", proof, count=1)
    assert "the frame does not wait in" in judge(folder, other).text


def test_all_lids_of_a_port_are_delivered_to_it(tmp_path: Path) -> None:
    made = of_plan(make_plan(load("ring,4"), "updown"))
    assert made is not None
    made.sl2vl, made.path_sls, made.lmc = {}, {}, 1
    made.lfts = [
        {lid: port for old, port in lft.items() for lid in made.lids(old - 1)} for lft in made.lfts
    ]
    folder, proof = proven(made.write(tmp_path / "net"), tmp_path / "proof")
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement.text
    assert "4 hosts with 8 LIDs" in judgement.text
    edited(folder, "fabric.json", '"lmc": 1', '"lmc": 0')
    judgement = judged(folder, proof)
    assert judgement.accepted, judgement.text
    assert "4 hosts with 7 LIDs" in judgement.text
    (folder / "s1.lft").write_text((folder / "s1.lft").read_text().replace("0x0005", "0x0105"))
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert "is for h2+1 (s1: no entry)" in judgement.text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("0x0001 port 1", "0x0001 port 0", "reaches nobody, but is for h1 (s1.lft:1: dropped)"),
        ("0x0001 port 1\n", "", "is for h1 (s1: no entry)"),
        ("0x0001 port 1", "0x0001 port 7", "nobody has the LID behind this port"),
        ("0x0001 port 1", "0x0001 port 1 0", "is for h1"),
    ],
)
def test_a_refusal_names_the_lid_the_switch_and_the_entry(
    written: tuple[Path, str], old: str, new: str, reason: str
) -> None:
    folder, proof = written
    edited(folder, "s1.lft", old, new)
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert judgement.text.startswith("knotless-verify: refused: frames to 0x0001 from h")
    assert reason in judgement.text


def test_classes_have_to_be_all_lids_and_nothing_else(written: tuple[Path, str]) -> None:
    folder, proof = written
    first, *_, last = (line for line in proof.splitlines() if line.startswith("class "))
    assert (first, last) == ("class 0x0000/0xffff", "class 0x8000/0x8000")
    refused = "knotless-verify: refused: the classes are not those of all LIDs\n"
    for old, new in (
        (f"{first}\n", ""),
        (f"{last}\n", ""),
        (last, "class 0x8000/0xc000"),
        (last, f"{last} but 0x8001"),
        (last, "class 128.0.0.0/1"),
        (f"{last}\n", f"{last}\nclass 01:00:00:00:00:00/ff:ff:00:00:00:00\n"),
    ):
        assert judge(folder, proof.replace(old, new)) == (1, refused)
    assert judge(folder, f"{proof}{last}\n").accepted


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("flow-control credits", "flow-control none", "InfiniBand has credits"),
        ("flow-control credits", "flow-control pfc", "InfiniBand has credits"),
        ("flow-control credits", "flow-control credits\ngroup 0-1", "credits of its own"),
        ("claim safe", "claim deadlock-free", "only delivery without failures"),
    ],
)
def test_other_claims_are_not_covered(
    written: tuple[Path, str], old: str, new: str, reason: str
) -> None:
    folder, proof = written
    judgement = judge(folder, proof.replace(old, new))
    assert judgement.status == 1
    assert reason in judgement.text


def test_steps_and_failures_are_not_covered(written: tuple[Path, str]) -> None:
    folder, proof = written
    assert "of subnets only delivery" in judge(folder, f"{proof}failure switch s1\n").text
    head, claim, evidence = proof.partition("claim safe\n")
    both = folder.parent / "both"
    both.write_text("\n".join([f"{head}then", *file_lines(folder), f"{claim}{evidence}"]))
    judgement = run(folder, folder, both)
    assert judgement.status == 1
    assert "is of one folder" in judgement.text


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0x0100", "not a line of a forwarding table"),
        ("0x0100 port", "not a line of a forwarding table"),
        ("0x0100 port  1", "not a number up to 254"),
        ("0x0100 port 255", "not a number up to 254"),
        ("0x0100 port 01", "not a number up to 254"),
        ("0x0100 port 1 1", "a port occurs twice"),
        ("0x0000 port 1", "not a LID of a port"),
        ("0xc000 port 1", "not a LID of a port"),
        ("0x100 port 1", "not a LID"),
        ("256 port 1", "not a LID"),
        ("0x0001 port 2", "a LID occurs twice"),
        ("sl2vl 1 2 : 0 1 2 3 4 5 6 7", "not a line of a forwarding table"),
        ("sl2vl 1 2 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 16", "not a number up to 15"),
        ("sl2vl 1 2 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7", "from port 1 to port 1 are not known"),
        ("from 1 sl 16 to 0x0002", "not a number up to 15"),
        ("from 1 sl 3 to", "not a line of a forwarding table"),
        ("from 1 sl 3 to 0x0002 0x0002", "a LID from one port occurs twice"),
    ],
)
def test_lines_that_are_no_entries_are_not_read(
    written: tuple[Path, str], line: str, reason: str
) -> None:
    folder, proof = written
    with (folder / "s1.lft").open("a") as file:
        file.write(f"{line}\n")
    judgement = judged(folder, proof)
    assert judgement.status == 2
    assert judgement.text.startswith("knotless-verify: s1.lft")
    assert reason in judgement.text


def test_lanes_of_all_switches_have_to_be_known(with_lanes: tuple[Path, str]) -> None:
    folder, proof = with_lanes
    text = (folder / "s1.lft").read_text()
    lanes = next(line for line in text.splitlines() if line.startswith("sl2vl 2 "))
    (folder / "s1.lft").write_text(text.replace(f"{lanes}\n", ""))
    assert "s1.lft: the lanes from port 2 to port" in judged(folder, proof).text
    (folder / "s1.lft").write_text(f"{text}{lanes}\n")
    assert "a pair of ports occurs twice" in judged(folder, proof).text
    (folder / "s1.lft").write_text(f"{text}from 2 sl 1 to 0x0100\n")
    assert "no host is behind port 2" in judged(folder, proof).text


def test_lane_15_drops(with_lanes: tuple[Path, str]) -> None:
    folder, proof = with_lanes
    text = (folder / "s1.lft").read_text()
    (folder / "s1.lft").write_text(re.sub(r"(sl2vl 1 \d+ :) 0 ", r"\1 15 ", text))
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert "reaches nobody" in judgement.text
    assert ": dropped)" in judgement.text


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        ("links", {"loss": 0.01}, 'unknown key "loss"'),
        ("links", {"a": "s9"}, "switch s9 is missing"),
        ("links", {"a_port": 0}, "port 0 of s1"),
        ("links", {"a_port": 255}, "out of range"),
        ("links", {"a_port": "1"}, "a_port is no number"),
        ("links", {"b": "s1", "b_port": 2}, "port s1:2 occurs twice"),
        ("hosts", {"lid": 2}, "two hosts have one LID"),
        ("hosts", {"lid": 0}, "the LIDs of h1"),
        ("hosts", {"lid": 0xBFFF, "lmc": 1}, "the LIDs of h1"),
        ("hosts", {"lmc": 8}, "out of range"),
        ("hosts", {"name": "h2"}, "channel h2 occurs twice"),
        ("hosts", {"name": "h 1"}, "the name"),
        ("hosts", {"port": 2}, "port s1:2 occurs twice"),
        ("hosts", {"mac": "02:00:00:00:00:01"}, 'unknown key "mac"'),
    ],
)
def test_subnets_that_are_none_are_not_read(
    written: tuple[Path, str], kind: str, values: dict[str, Any], reason: str
) -> None:
    folder, proof = written
    fabric = json.loads((folder / "fabric.json").read_text())
    fabric[kind][0] |= values
    (folder / "fabric.json").write_text(json.dumps(fabric))
    judgement = judged(folder, proof)
    assert judgement.status == 2
    assert reason in judgement.text


def test_no_file_may_be_missing_or_of_another_kind(written: tuple[Path, str]) -> None:
    folder, proof = written
    text = (folder / "s1.lft").read_text()
    (folder / "s1.lft").unlink()
    assert "s1.lft is missing: what s1 holds is not known" in judged(folder, proof).text
    (folder / "s1.lft").write_text(text)
    (folder / "s9.lft").write_text("")
    assert "s9.lft: fabric.json has no such switch" in judged(folder, proof).text
    (folder / "s9.lft").unlink()
    (folder / "s1.flows").write_text("")
    assert "s1.flows: fabric.json has no such switch" in judged(folder, proof).text


def lines_of(folder: Path) -> Iterator[str]:
    """Yield what ``knotless-verify --print`` is to print, in any order."""
    fabric = SubnetFolder(folder)
    for (a, a_port), (b, b_port) in fabric.peer.items():
        yield f"channel {a}:{a_port} to {b}:{b_port}"
    for name, (switch, port) in fabric.hosts.items():
        for more, lid in enumerate(fabric.lids[name]):
            yield f"host {name}{f'+{more}' if more else ''} to {switch}:{port} 0x{lid:04x}"
    for switch, entries in fabric.entries.items():
        for lid, ports in entries.items():
            yield f"entry {switch} 0x{lid:04x} to {' '.join(map(str, ports))}"
    for (switch, enters, leaves), lanes in fabric.lanes.items():
        yield f"lanes {switch} {enters} {leaves} {' '.join(map(str, lanes))}"
    for (switch, port, lid), sl in fabric.level.items():
        yield f"level {switch} {port} 0x{lid:04x} {sl}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    rng = random.Random(3)  # noqa: S311 - it only has to be repeatable
    return [first_with("safe", tmp_path_factory.mktemp("safe"), rng)[0] for _ in range(6)]


@pytest.mark.seeds(200, gate=30)
def test_both_read_the_same_of_damaged_folders(
    tmp_path: Path, folders: list[Path], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    files = {path.name: path.read_text() for path in rng.choice(folders).iterdir()}
    for change in rng.sample(CHANGES, 4):
        change(files, rng)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    judgement = run("--print", tmp_path)
    assert judgement.status == 0, judgement.text
    assert sorted(judgement.text.splitlines()) == sorted(lines_of(tmp_path))
