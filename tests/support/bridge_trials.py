"""Trials of proofs for 802.1Q switches: what is accepted is right, as other code finds out.

The tests beside ``proofs`` run few of them, ``python -m tests.prove_proofs bridges`` thousands.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from knotless.base.errors import FabricError, PlanError, ProofError
from knotless.forwarding.dot1q.files import files_of, read_files
from knotless.forwarding.dot1q.from_plan import export
from knotless.forwarding.dot1q.state import state_of_dot1q
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.bridge_proof import bridge_proof
from knotless.verification.check import verdict_of
from tests.support import table_trials
from tests.support.bridge_damage import CHANGES
from tests.support.bridge_folders import (
    TAGS,
    BridgeFolder,
    classes,
    head_of,
    proof_of_bridges,
    rank_lines,
)
from tests.support.cycles import has_cycle
from tests.support.proof_trials import climbed_ranks, with_files_of
from tests.support.proofs import judge, write_rules
from tests.support.table_trials import refused, without_ranks, write_damaged

PLANS = (
    *("ring,4 updown", "ring,6 updown", "ring,6 dor", "ring,5 dor", "mesh,3,3 dor"),
    *("mesh,2,3,hosts=2 dor", "flat,5 updown", "clos,3,hosts=2 updown", "lsft,2 lsft"),
    *("random,6,degree=3,hosts=1,seed=4 prefix", "random,8,degree=3,seed=2 updown"),
    *("torus,3,3 prefix", "mtree,3,3 updown", "fattree,2,4,2 smodk", "flat,6 updown"),
)


def files_of_bridges(spec: str, engine: str) -> dict[str, str]:
    """Return the files of an export that count for a proof."""
    plan = make_plan(load(spec), engine, vcs=1, vlans="tree", tagging="switch")
    return counting(files_of(export(plan)))


def counting(files: Mapping[str, str]) -> dict[str, str]:
    """Return the fabric and the scripts."""
    return {
        name: text
        for name, text in files.items()
        if name == "fabric.json" or name.endswith(".bridge")
    }


def proof_of_product(files: Mapping[str, str]) -> str:
    """Return the proof of the verdict on the scripts; raises ProofError if there is none."""
    read = read_files(files, ".bridge")
    state = state_of_dot1q(read)
    proof, _ = bridge_proof(files, read, state, verdict_of(state, "pause"))
    return proof


def drawn_files(rng: random.Random) -> dict[str, str]:
    """Return the files of a fabric, some of them with a change."""
    while True:
        try:
            files = files_of_bridges(*rng.choice(PLANS).split())
            break
        except PlanError:  # paths that its VLANs cannot have
            continue
    for change in rng.sample(CHANGES, rng.choice([0, 0, 1, 2])):
        change(files, rng)
    return files


def trial_of_bridges(scratch: Path, rng: random.Random) -> tuple[str, Path, str]:
    """Write a fabric and the proof of its verdict, and judge that.

    Returns what it claims, the folder that it is about, and the proof. Asserts that the claim is
    accepted or replayed, and is what frames find that are followed.
    """
    files = drawn_files(rng)
    folder = write_rules(scratch / "bridges", files)
    wrong = BridgeFolder(folder).fault()
    try:
        proof = proof_of_product(files)
    except FabricError:  # as of a cable from a switch to itself
        return "not read", folder, ""
    except ProofError as error:
        assert wrong
        return f"not written: {str(error)[:60]}", folder, ""
    judgement = judge(folder, proof)
    if "\nclaim safe\n" in proof:
        assert judgement.accepted, judgement.text
        assert not wrong, wrong
        fabric = BridgeFolder(folder)
        tags_close_a_cycle = has_cycle(fabric.waits(tagged=True))
        has_tags = TAGS in proof.splitlines()
        assert has_tags == (not tags_close_a_cycle and not fabric.pops_on_links)
        return "safe", folder, proof
    assert judgement.replayed, judgement.text
    assert wrong == "a cycle", wrong
    return "cycle", folder, proof


def trial_of_scripts(intact: Path, proof: str, folder: Path, rng: random.Random) -> str:
    """Damage the scripts of a proof; judge them with its evidence, and with new evidence.

    Returns whether they were accepted. Asserts that what is accepted is right, as frames find that
    are followed one by one, and that what is refused with the best evidence is not.
    """
    names = write_damaged(intact, folder, CHANGES, rng)
    proofs = [with_files_of(proof, folder), proof_of_bridges(folder)]
    proofs.append(proof_of_bridges(folder, tagged=True))
    judgements = [judge(folder, each) for each in proofs]
    assert all(judgement.status < 2 for judgement in judgements), (names, judgements)
    wrong = BridgeFolder(folder).fault()
    assert not (wrong and any(judgement.accepted for judgement in judgements)), (names, wrong)
    assert wrong or judgements[1].accepted, (names, judgements[1].text)
    fabric = BridgeFolder(folder)
    tags_close_a_cycle = has_cycle(fabric.waits(tagged=True))
    if TAGS in proof.splitlines():
        assert not (tags_close_a_cycle and judgements[0].accepted), names
    is_safe_with_tags = not wrong and not tags_close_a_cycle
    assert is_safe_with_tags or not judgements[2].accepted, names
    # Below a tag that is taken off, the checker knows of no other.
    assert judgements[2].accepted or not is_safe_with_tags or fabric.pops_on_links, names
    if wrong:
        return "refused, and wrong"
    first = judgements[0].accepted
    return "accepted with the old evidence" if first else "accepted with new evidence"


def trial_of_cyclic_bridges(folder: Path, cycle: str, rng: random.Random) -> int:
    """Judge a fabric with a proof of a ``cycle`` with proofs that say otherwise; returns how many.

    Asserts that none is accepted.
    """
    fabric = BridgeFolder(folder)
    edges, lines = sorted(fabric.waits()), classes(fabric)
    return refused(
        folder,
        [proof_of_bridges(folder), without_ranks(cycle, lines)],
        head_of(folder),
        lambda: rank_lines(climbed_ranks(edges, rng, 40)),
        lines,
        rng,
    )


first_with = partial(table_trials.first_with, trial_of_bridges)
"""Return a folder of scripts and its proof: others are drawn until one has this claim."""
