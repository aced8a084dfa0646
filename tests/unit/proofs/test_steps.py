"""Proofs of the steps of a change: switches hold any of several rules, in every mixture."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from knotless.base.errors import KnotlessError, ProofError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import dir_files, read_dir, rule_files
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.changes.planner import between_plans
from knotless.verification.changes.record import step_files
from knotless.verification.proof_steps import StepProof, step_proof
from tests.support.damage import damaged
from tests.support.proof_trials import AnyVersion, addresses, undelivered, unsafe
from tests.support.proofs import BUILT, file_lines, judge, write_rules
from tests.support.reference_rules import RuleReference, TwoTagsError

pytestmark = BUILT
CHANGES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("ring,5", {"engine": "updown"}, {"engine": "dor", "vcs": 2}),
    ("ring,4", {"engine": "updown", "root": "s1"}, {"engine": "updown", "root": "s3"}),
    ("fattree2,4", {"engine": "fattree"}, {"engine": "updown"}),
    ("torus,4,4", {"engine": "dor"}, {"engine": "updown"}),
)
"""Two-phase changes, and one with drops."""


class Step(NamedTuple):
    """The files of the folders whose rules frames can meet, oldest first."""

    folders: list[dict[str, str]]
    control: FlowControl


@cache
def steps_of(number: int) -> list[Step]:
    """Return the steps of a change."""
    spec, before, after = CHANGES[number]
    fabric = load(spec)
    change = between_plans(make_plan(fabric, **before), make_plan(fabric, **after))
    files = step_files(change)
    return [
        Step(files[last + 1 - len(step.proof.generations) : last + 1], change.before.flow_control)
        for last, step in enumerate(change.steps, 1)
    ]


ALL_STEPS = [
    (change, number) for change in range(len(CHANGES)) for number in range(len(steps_of(change)))
]


def written(parent: Path, folders: Sequence[dict[str, str]]) -> list[Path]:
    parent.mkdir(exist_ok=True)
    return [
        write_rules(parent / f"rules{number}", files)
        for number, files in zip(count(), folders, strict=False)
    ]


def proof_of_step(folders: Sequence[Path], control: FlowControl) -> StepProof:
    read = [read_dir(folder) for folder in folders]
    rules = [each for _, each in read]
    return step_proof([*map(rule_files, folders)], read[0][0], rules, control)


def with_files_of(proof: str, folders: Sequence[Path]) -> str:
    """Return a proof for other files, with its evidence as it is."""
    lines = proof.splitlines()
    claim = next(n for n, line in enumerate(lines) if line.startswith("claim "))
    head = [line for line in lines[:claim] if line != "then" and not line.startswith("file ")]
    files = [line for folder in folders for line in ["then", *file_lines(folder)]][1:]
    return "\n".join([*head, *files, *lines[claim:]]) + "\n"


@pytest.mark.parametrize(("change", "number"), ALL_STEPS)
def test_each_step_of_a_change_is_proven(tmp_path: Path, change: int, number: int) -> None:
    step = steps_of(change)[number]
    folders = written(tmp_path, step.folders)
    proof = proof_of_step(folders, step.control)
    judgement = judge(folders[0], proof.text, *folders[1:])
    assert judgement.accepted, judgement.text
    assert ", while its rules change" in judgement.text.splitlines()[0]
    assert f"any of\n{len(folders)} folders" in judgement.text
    assert "Proven in Coq (check_all_any_sound)" in judgement.text
    assert ("(check_all_sound)" in judgement.text) is proof.delivers
    assert ("\nNot claimed: that frames arrive." in judgement.text) is not proof.delivers
    walker = RuleReference(AnyVersion(*((files, ()) for files in step.folders[-2:])))
    assert (undelivered(walker) == "") is proof.delivers
    # A step whose mixtures lose frames is not proven to deliver them.
    more = proof.text.replace("claim deadlock-free", "claim safe")
    assert judge(folders[0], more, *folders[1:]).accepted is proof.delivers


def test_steps_with_and_without_delivery_are_among_these(tmp_path: Path) -> None:
    claims = set()
    for change, number in ALL_STEPS:
        step = steps_of(change)[number]
        folders = written(tmp_path / f"{change}-{number}", step.folders)
        claims.add((len(folders), proof_of_step(folders, step.control).delivers))
    assert {(2, True), (3, True), (2, False)} <= claims


@pytest.mark.seeds(200, gate=20)
def test_damaged_steps_are_accepted_only_if_every_mixture_is_right(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    change, number = rng.choice(ALL_STEPS)
    step = steps_of(change)[number]
    intact = proof_of_step(written(tmp_path, step.folders), step.control)
    changed = list(step.folders)
    place = rng.randrange(len(changed))
    kind, files = damaged(changed[place], rng)
    changed[place] = dict(files)
    folders = written(tmp_path, changed)
    proofs = [with_files_of(intact.text, folders)]
    proofs.append(proofs[0].replace("claim safe", "claim deadlock-free"))
    with suppress(KnotlessError):
        proofs.append(proof_of_step(folders, step.control).text)
    for proof in proofs:
        if not judge(folders[0], proof, *folders[1:]).accepted:
            continue
        walker = RuleReference(AnyVersion(*((each, ()) for each in changed)))
        try:
            wrong = unsafe(walker, addresses(folders[0], rng, 4), step.control.value)
        except TwoTagsError:
            return
        assert not wrong, (kind, wrong)
        if "claim safe" in proof:
            walker = RuleReference(AnyVersion(*((each, ()) for each in changed[-2:])))
            assert not undelivered(walker), kind


def plans_that_wait_for_each_other(parent: Path) -> list[Path]:
    """Return rules that are safe alone, and of which a mixture has a cycle."""
    plans = (make_plan(load("ring,4"), "updown", root=root) for root in ("s2", "s4"))
    return written(parent, [dir_files(plan.fabric, compile_rules(plan)) for plan in plans])


def test_rules_whose_mixtures_can_deadlock_have_no_proof(tmp_path: Path) -> None:
    folders = plans_that_wait_for_each_other(tmp_path)
    control = FlowControl("pause")
    alone = [proof_of_step([folder], control) for folder in folders]
    for folder, proof in zip(folders, alone, strict=True):
        assert judge(folder, proof.text).accepted
    with pytest.raises(ProofError, match=r"mixed in any order, can deadlock: s\d:\d/0 -> "):
        proof_of_step(folders, control)
    for proof in alone:
        text = with_files_of(proof.text, folders).replace("claim safe", "claim deadlock-free")
        judgement = judge(folders[0], text, folders[1])
        assert judgement.status == 1
        assert " can wait for " in judgement.text
        assert ".flows:" in judgement.text
        assert " of folder " in judgement.text


def test_the_folders_are_those_of_the_proof_in_their_order(tmp_path: Path) -> None:
    step = steps_of(0)[0]
    folders = written(tmp_path, step.folders)
    proof = proof_of_step(folders, step.control).text
    assert judge(folders[0], proof, folders[1]).accepted
    assert "has changed" in judge(folders[1], proof, folders[0]).text
    judgement = judge(folders[0], proof)
    assert judgement.text == (
        "knotless-verify: refused: the proof is of 2 folders of rules, not of 1\n"
    )
    fabric = folders[1] / "fabric.json"
    fabric.write_text(fabric.read_text() + "\n")
    judgement = judge(folders[0], with_files_of(proof, folders), folders[1])
    assert judgement == (
        1,
        "knotless-verify: refused: fabric.json is not the same in all folders\n",
    )


def test_what_switches_do_has_to_be_defined_in_each_folder(tmp_path: Path) -> None:
    step = steps_of(0)[0]
    proof = proof_of_step(written(tmp_path, step.folders), step.control).text
    for place in range(2):
        changed = [dict(files) for files in step.folders]
        rules = changed[place]["s1.flows"]
        assert "pop_vlan,output:1" in rules
        changed[place]["s1.flows"] = rules.replace("pop_vlan,output:1", "pop_vlan,pop_vlan", 1)
        folders = written(tmp_path, changed)
        text = with_files_of(proof, folders).replace("claim safe", "claim deadlock-free")
        judgement = judge(folders[0], text, folders[1])
        assert judgement.status == 1
        assert f" of folder {place + 1}: the actions cannot be applied" in judgement.text
