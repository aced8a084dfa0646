"""Proofs of what fast-failover groups do while a part fails, and afterwards."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.forwarding.openflow.directory import read_dir
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.topologies import Fabric
from knotless.verification.check import verdict_of
from knotless.verification.failover import coverage
from tests.support.damage import damaged
from tests.support.proof_trials import (
    AnyVersion,
    addresses,
    flow_control_of,
    unsafe,
    with_files_of,
)
from tests.support.proofs import BUILT, files_of_plan, judge, proof_of_product, write_rules
from tests.support.reference import CUT, Place
from tests.support.reference_rules import RuleFiles, RuleReference, TwoTagsError

pytestmark = BUILT
PLANS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ring,4", {"engine": "updown"}),
    ("ring,5,hosts=2", {"engine": "updown"}),
    ("torus,3,3", {"engine": "dor"}),
    ("fattree2,4", {"engine": "fattree"}),
    ("torus,4,4", {"engine": "dor"}),
)


@pytest.fixture(scope="module", params=PLANS, ids=[spec for spec, _ in PLANS])
def files(request: pytest.FixtureRequest) -> dict[str, str]:
    spec, choices = request.param
    return files_of_plan(spec, protection="fast-failover", **choices)


def sections(proof: str) -> dict[str, list[str]]:
    """Return the lines of a proof on each failure by its name."""
    _, *parts = proof.split("\nfailure ")
    return {part.split("\n")[0]: part.strip().split("\n")[1:] for part in parts}


def cut_pairs(lines: list[str]) -> set[tuple[str, str]]:
    cuts = (line.split()[1:] for line in lines if line.startswith("cut "))
    return {(source, to) for source, *destinations in cuts for to in destinations}


def down_ports(fabric: Fabric, name: str) -> set[Place]:
    """Return the ports of both ends of the links that fail with a part."""
    kind, part = name.split()
    ends = [((link.a, link.a_port), (link.b, link.b_port)) for link in fabric.links]
    if kind == "link":
        switch, port = part.split(":")
        return {end for each in ends if (switch, int(port)) in each for end in each}
    return {end for each in ends if part in (each[0][0], each[1][0]) for end in each}


def while_it_fails(files: Mapping[str, str], down: set[Place]) -> RuleReference:
    """Return a walker for which every switch has seen the failure, or has not, for each frame."""
    return RuleReference(AnyVersion((files, ()), (files, down)))


def after_it(files: Mapping[str, str], down: set[Place]) -> RuleReference:
    walker = RuleReference(RuleFiles(files, down))
    for end in down:
        walker.peer.pop(end)
    return walker


def hosts_left(fabric: Fabric, name: str) -> list[str]:
    return [host.name for host in fabric.hosts if name != f"switch {host.switch}"]


def test_all_single_failures_of_a_protected_plan_are_proven(
    tmp_path: Path, files: dict[str, str]
) -> None:
    folder = write_rules(tmp_path / "rules", files)
    proof = proof_of_product(folder)
    fabric, rules = read_dir(folder)
    parts = sections(proof)
    assert len(parts) == len(fabric.links) + len(fabric.switches)
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement.text
    first = judgement.text.splitlines()[0]
    assert first.endswith(f", nor if one of {len(parts)} parts fails")
    control = verdict_of(state_of_rules(fabric, rules)).flow_control
    lost = {
        failover.failed: failover.lost for failover in coverage(fabric, rules, control).failures
    }
    assert sum(len(cut_pairs(lines)) for lines in parts.values()) == sum(lost.values())
    assert all("delivers" in lines for lines in parts.values())


def test_who_is_cut_off_is_what_frames_show(tmp_path: Path, files: dict[str, str]) -> None:
    folder = write_rules(tmp_path / "rules", files)
    fabric, _ = read_dir(folder)
    rng = random.Random(len(files))  # noqa: S311 - it only has to be repeatable
    parts = sections(proof_of_product(folder))
    for name in rng.sample(sorted(parts), 6):
        down, hosts = down_ports(fabric, name), hosts_left(fabric, name)
        walker = after_it(files, down)
        pairs = {(a, b) for a in hosts for b in hosts if a != b}
        assert cut_pairs(parts[name]) == pairs & walker.failed_pairs()
        assert not unsafe(while_it_fails(files, down), (), "pfc")


def changed_section(proof: str, name: str, change: Any) -> str:
    head, *parts = proof.split("\nfailure ")
    lines = {part.split("\n")[0]: part.split("\n") for part in parts}
    lines[name] = change(lines[name])
    text = "\nfailure ".join([head, *map("\n".join, lines.values())])
    assert text != proof
    return text


def first_with_a_cut(proof: str) -> str:
    return next(name for name, lines in sections(proof).items() if cut_pairs(lines))


@pytest.fixture(scope="module")
def torus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = files_of_plan("torus,4,4", protection="fast-failover", engine="dor")
    return write_rules(tmp_path_factory.mktemp("torus") / "rules", files)


def test_a_pair_that_is_cut_off_has_to_be_named(torus: Path) -> None:
    proof = proof_of_product(torus)
    name = first_with_a_cut(proof)

    def without_a_cut(lines: list[str]) -> list[str]:
        cut = next(line for line in lines if line.startswith("cut "))
        return [line for line in lines if line != cut]

    judgement = judge(torus, changed_section(proof, name, without_a_cut))
    assert judgement.status == 1
    assert f"refused: failure of {name}: frames to " in judgement.text
    assert ": the frame reaches nobody, but is for h" in judgement.text


def test_what_is_not_claimed_of_receivers_is_said(torus: Path) -> None:
    proof = proof_of_product(torus)
    name = first_with_a_cut(proof)

    def silent(lines: list[str]) -> list[str]:
        return [line for line in lines if line != "delivers" and not line.startswith("cut ")]

    judgement = judge(torus, changed_section(proof, name, silent))
    assert judgement.accepted
    assert "Not claimed: who receives frames after 1 of them." in judgement.text
    assert f"    {name} cuts" not in judgement.text
    assert "after 47 of these failures" in judgement.text


def test_a_pair_is_not_cut_off_from_itself(torus: Path) -> None:
    """Else the address would have no owner, and nobody would have to receive its frames."""
    proof = proof_of_product(torus)
    name = first_with_a_cut(proof)
    [(source, to), *_] = sorted(cut_pairs(sections(proof)[name]))

    def of_itself(lines: list[str]) -> list[str]:
        others = [line for line in lines if not line.startswith("cut ")]
        place = others.index("delivers") + 1
        return [*others[:place], f"cut {source} {source}", f"cut {to} {to}", *others[place:]]

    judgement = judge(torus, changed_section(proof, name, of_itself))
    assert judgement.status == 1
    assert "the frame reaches nobody" in judgement.text


def test_ranks_of_the_intact_fabric_do_not_do_for_diverted_frames(torus: Path) -> None:
    proof = proof_of_product(torus)
    parts = sections(proof)
    own = [
        name for name, lines in parts.items() if any(line.startswith("bound ") for line in lines)
    ]
    assert len(own) == len(parts)  # this plan has no order for all failures together

    def without_ranks(lines: list[str]) -> list[str]:
        return [line for line in lines if not line.startswith(("bound ", "rank "))]

    judgement = judge(torus, changed_section(proof, own[0], without_ranks))
    assert judgement.status == 1
    assert f"failure of {own[0]}: " in judgement.text
    assert " can wait for " in judgement.text


@pytest.mark.parametrize(
    ("lines", "status", "reason"),
    [
        ("failure link s9:77\n", 1, "there is no link at s9:77"),
        ("failure link h1\n", 1, "there is no link at h1"),
        ("failure switch s77\n", 1, "there is no switch s77"),
        ("failure switch s1\ncut h1 h2\n", 2, "not a line of this claim"),
        ("failure switch s1\ndelivers\ncut h2 h77\n", 1, "there is no channel h77"),
        ("failure switch s1\nrank s2:2/0 3\n", 2, "ranks without a bound"),
        ("failure part s1\n", 2, "not a line of this claim"),
    ],
)
def test_lines_on_failures_that_are_none(torus: Path, lines: str, status: int, reason: str) -> None:
    head = proof_of_product(torus).split("\nfailure ")[0] + "\n"
    assert judge(torus, head).accepted
    judgement = judge(torus, head + lines)
    assert judgement.status == status
    assert reason in judgement.text


def test_without_failures_ports_are_assumed_to_be_up(torus: Path) -> None:
    head = proof_of_product(torus).split("\nfailure ")[0] + "\n"
    judgement = judge(torus, head)
    assert judgement.accepted
    assert "no port that a fast-failover group watches is down" in judgement.text


def watched_ports(rng: random.Random, files: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the files with one change of a fast-failover group."""
    name = rng.choice([name for name, text in sorted(files.items()) if "type=ff" in text])
    lines = files[name].splitlines()
    number = rng.choice([n for n, line in enumerate(lines) if "type=ff" in line])
    pattern, new = rng.choice(
        [
            (r"watch_port:\d", f"watch_port:{rng.randint(1, 4)}"),
            (r"output:\d", f"output:{rng.randint(1, 4)}"),
            (r"(4\d{3})->vlan_vid", f"{rng.choice([4098, 4608, 4609])}->vlan_vid"),
            (r"IN_PORT", f"output:{rng.randint(1, 4)}"),
            (r",bucket=watch_port:\d,actions=output:\d", ""),
        ]
    )
    lines[number] = re.sub(pattern, new, lines[number], count=rng.choice([0, 1]))
    return f"{name}: {pattern}", {**files, name: "".join(f"{line}\n" for line in lines)}


SMALL = [files_of_plan(spec, protection="fast-failover", **choices) for spec, choices in PLANS[:3]]


def proofs_of(folder: Path, intact: str) -> Iterator[str]:
    yield with_files_of(intact, folder)
    try:
        yield proof_of_product(folder, flow_control_of(intact))
    except KnotlessError:
        return


@pytest.mark.seeds(200, gate=20)
def test_damaged_groups_are_accepted_only_if_every_failure_is_right(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    files = rng.choice(SMALL)
    folder = write_rules(tmp_path / "rules", files)
    intact = proof_of_product(folder)
    change = watched_ports if rng.random() < 0.7 else lambda rng, files: damaged(files, rng)
    kind, changed = change(rng, files)
    write_rules(folder, changed)
    try:
        fabric, _ = read_dir(folder)
    except KnotlessError:
        return
    for proof in proofs_of(folder, intact):
        if "claim safe" not in proof or not judge(folder, proof).accepted:
            continue
        try:
            for name, lines in rng.sample(sorted(sections(proof).items()), 3):
                down = down_ports(fabric, name)
                walker = while_it_fails(changed, down)
                some = addresses(folder, rng, 2)
                assert not unsafe(walker, some, flow_control_of(proof)), (kind, name)
                after, left = after_it(changed, down), hosts_left(fabric, name)
                missed = {(a, b) for a, b in after.failed_pairs() if a in left and b in left}
                harmless = {(a, b) for a, b in missed if only_lost_copies(after, a, b)}
                assert missed - harmless <= cut_pairs(lines), (kind, name)
        except TwoTagsError:
            return


def only_lost_copies(walker: RuleReference, source: str, to: str) -> bool:
    """Return whether a frame arrives, and other copies of it leave where nothing is."""
    fates = walker.fates(source, to)
    return {tuple(name for name in fate if name != CUT) for fate in fates} == {(to,)}


def test_a_proof_with_failures_is_of_one_folder(torus: Path) -> None:
    proof = proof_of_product(torus)
    files = re.findall(r"^file .*\n", proof, re.MULTILINE)
    twice = proof.replace("claim safe", f"then\n{''.join(files)}claim safe")
    judgement = judge(torus, twice, torus)
    assert judgement == (
        1,
        "knotless-verify: refused: this claim is for one folder of rules\n",
    )
