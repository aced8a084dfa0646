"""Trials of proofs for InfiniBand subnets: what is accepted is right, as other code finds out.

The tests beside ``proofs`` run few of them, ``python -m tests.prove_proofs lids`` thousands.
"""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

from knotless.base.errors import ProofError
from knotless.cli.commands.check.proof import write_imported_proof
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.imported import verdict_of_imported
from tests.support import table_trials
from tests.support.adaptive_subnets import Choices, far_text
from tests.support.infiniband_dumps import Subnet, of_plan, random_subnet
from tests.support.proof_trials import climbed_ranks, with_files_of
from tests.support.proofs import judge
from tests.support.subnet_damage import CHANGES
from tests.support.subnet_folders import (
    SubnetFolder,
    classes,
    head_of,
    proof_of_subnet,
    rank_lines,
)
from tests.support.table_trials import refused, without_ranks, write_damaged

PLANS = (
    *("ring,4 updown", "ring,5 dor", "torus,3,3 dor", "torus,5 dor", "mesh,3,2,hosts=2 dor"),
    *("fattree2,4 fattree", "ring,6 dl", "random,6,degree=3,hosts=1,seed=4 lash"),
    *("random,8,degree=3,hosts=1,seed=7 updown", "lsft,2 lsft", "random,7,degree=4,seed=2 dl"),
)


def drawn_subnet(rng: random.Random) -> tuple[Subnet, Choices]:
    """Return a subnet, safe or not, in many forms: lanes, LMC, adaptive tables, stale LIDs."""
    choices: Choices = {}
    if rng.random() < 0.25:
        return random_subnet(rng.randrange(1 << 30)), choices
    subnet = None
    while subnet is None:
        spec, engine = rng.choice(PLANS).split()
        subnet = of_plan(make_plan(load(spec), engine))
    if rng.random() < 0.3:
        subnet.sl2vl, subnet.path_sls = {}, {}
    if rng.random() < 0.6:
        add_switch_lids(subnet, rng)
    if rng.random() < 0.2:
        for lft in subnet.lfts:
            lft[0x3E8] = rng.choice([*(port for port in lft.values() if port), 0xFE])
    if not subnet.sl2vl and rng.random() < 0.4:
        for switch, lft in enumerate(subnet.lfts):
            ports = [port for s, port in subnet.ends if s == switch]
            for lid in lft:
                if rng.random() < 0.05:
                    choices[switch, lid] = {rng.choice(ports)}
    return subnet, choices


def add_switch_lids(subnet: Subnet, rng: random.Random) -> None:
    """Give switches' own LIDs entries: the paths to a host there, or any shortest ones."""
    at = {switch: host for host, (_, switch, _) in enumerate(subnet.hosts)}
    for target in range(len(subnet.names)):
        lid = subnet.switch_lid(target)
        if target in at and rng.random() < 0.95:
            like = subnet.lids(at[target])[0]
            for switch, lft in enumerate(subnet.lfts):
                if like in lft:
                    lft[lid] = 0 if switch == target else lft[like]
            for (host, to), sl in [*subnet.path_sls.items()]:
                if to == like:
                    subnet.path_sls[host, lid] = sl
            continue
        distance = {target: 0}
        for here in (queue := [target]):
            for (s, _), (kind, peer, _) in subnet.ends.items():
                if s == here and kind == "switch" and peer not in distance:
                    distance[peer] = distance[here] + 1
                    queue.append(peer)
        subnet.lfts[target][lid] = 0
        for switch in distance:
            nearer = [
                port
                for (s, port), (kind, peer, _) in sorted(subnet.ends.items())
                if s == switch and kind == "switch" and distance[peer] < distance[switch]
            ]
            if nearer:
                subnet.lfts[switch][lid] = rng.choice(nearer)


def proven(source: Path, file: Path) -> tuple[Path, str]:
    """Write the proof of a subnet; returns the folder that it is about, and its text.

    Raises ProofError if the product does not write one.
    """
    imported = read_paths([str(source)])
    written = write_imported_proof(str(file), imported, verdict_of_imported(imported))
    return Path(written.rules), file.read_text()


def trial_of_subnet(scratch: Path, rng: random.Random) -> tuple[str, Path, str]:
    """Write a subnet and the proof of its verdict, and judge that.

    Returns what it claims, the folder that it is about, and the proof. Asserts that the claim is
    accepted or replayed, and is what packets find that are followed.
    """
    subnet, choices = drawn_subnet(rng)
    folder = scratch / "proof.rules"
    source = subnet.write(scratch / "net")
    if choices:
        (source / "ibdiagnet2.far").write_text(far_text(subnet, choices))
    try:
        folder, proof = proven(source, scratch / "proof")
    except ProofError as error:
        assert not folder.exists()
        return f"not written: {str(error)[:60]}", folder, ""
    judgement = judge(folder, proof)
    wrong = SubnetFolder(folder).fault()
    if "\nclaim safe\n" in proof:
        assert judgement.accepted, judgement.text
        assert not wrong, wrong
        assert choices or subnet.judged() == (True, 0)
        return "safe", folder, proof
    assert judgement.replayed, judgement.text
    assert wrong == "a cycle", wrong
    return "cycle", folder, proof


def trial_of_lids(intact: Path, proof: str, folder: Path, rng: random.Random) -> str:
    """Damage the tables of a proof; judge them with its evidence, and with new evidence.

    Returns whether they were accepted. Asserts that what is accepted is right, as packets find that
    are followed one by one, and that what is refused with the best evidence is not.
    """
    names = write_damaged(intact, folder, CHANGES, rng)
    proofs = with_files_of(proof, folder), proof_of_subnet(folder)
    judgements = [judge(folder, each) for each in proofs]
    assert all(judgement.status < 2 for judgement in judgements), judgements
    wrong = SubnetFolder(folder).fault()
    if any(judgement.accepted for judgement in judgements):
        assert not wrong, (names, wrong)
        assert judgements[1].accepted, (names, judgements[1].text)
        first = judgements[0].accepted
        return "accepted with the old evidence" if first else "accepted with new evidence"
    return "refused, and wrong" if wrong else "refused, and nothing is wrong for hosts"


def trial_of_cyclic_subnet(folder: Path, cycle: str, rng: random.Random) -> int:
    """Judge a subnet with a proof of a ``cycle`` with proofs that say otherwise; returns how many.

    Asserts that none is accepted.
    """
    fabric = SubnetFolder(folder)
    edges, lines = sorted(fabric.waits()), classes(fabric)
    return refused(
        folder,
        [proof_of_subnet(folder), without_ranks(cycle, lines)],
        head_of(folder),
        lambda: rank_lines(climbed_ranks(edges, rng, 40)),
        lines,
        rng,
    )


first_with = partial(table_trials.first_with, trial_of_subnet)
"""Return a folder of tables and its proof: others are drawn until one has this claim."""
