"""Trials of the program that judges proofs: what it accepts is right, as others find out.

The tests beside ``proofs`` run few of each, ``python -m tests.prove_proofs`` thousands.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import dir_files, read_dir
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.routing.graphs.dependencies import waiting
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.numbering import mac_text, mac_value
from knotless.verification.check import verdict_of
from knotless.verification.dependencies import edges_of
from tests.support.damage import damaged, damaged_proof
from tests.support.printed_rules import printed
from tests.support.proofs import (
    ALL,
    file_lines,
    judge,
    proof_of,
    proof_of_product,
    run,
    tested,
    write_rules,
)
from tests.support.reference import CUT, LOOP, Place
from tests.support.reference_rules import (
    BROADCAST,
    Copies,
    Files,
    Frame,
    RuleFiles,
    RuleReference,
    fits,
)

PLANS: tuple[tuple[str, dict[str, object]], ...] = (
    ("ring,4", {"engine": "updown"}),
    ("torus,3,3", {"engine": "dor"}),
    ("torus,5", {"engine": "dor"}),
    ("fattree2,4", {"engine": "fattree"}),
    ("mesh,3,2,hosts=2", {"engine": "dor"}),
    ("ring,6", {"engine": "dl"}),
    ("random,6,degree=3,hosts=1,seed=4", {"engine": "lash"}),
)
"""Small plans: with one virtual channel and with several, with and without groups."""


class AnyOfOnePriority(RuleFiles):
    """Rules of files, of which any of the highest priority counts that matches."""

    def _from_table(
        self, table: int, place: Place, frame: Frame, metadata: int
    ) -> Iterator[Copies]:
        flows = [
            flow
            for flow in self.flows[place[0]]
            if flow.table == table and fits(flow, place, frame, metadata)
        ]
        if not flows:
            yield []
        highest = max((flow.priority for flow in flows), default=0)
        for flow in flows:
            if flow.priority == highest:
                yield from self._applied(flow.actions, place, frame, metadata)


class AnyVersion(AnyOfOnePriority):
    """Rules of several folders: a switch does what those of any of them say, for each frame anew.

    Each has the ports that are down with it: what is sent there is lost.
    """

    def __init__(self, *versions: tuple[Files, Collection[Place]]) -> None:
        super().__init__(versions[0][0])
        self._versions = [(AnyOfOnePriority(files, down), set(down)) for files, down in versions]

    def __call__(self, place: Place, frame: Frame) -> list[Copies]:
        """Return the copies that leave a switch, for each choice."""
        return [
            [copy for copy in copies if (place[0], copy[0]) not in down]
            for rules, down in self._versions
            for copies in rules(place, frame)
        ]


def flow_control_of(proof: str) -> str:
    """Return the flow control that a proof file names."""
    return next(line for line in proof.splitlines() if line.startswith("flow-control ")).split()[1]


def addresses(folder: Path, rng: random.Random, count: int) -> Iterator[int]:
    """Yield addresses at the edges of what rules tell apart, and any others."""
    patterns = sorted(tested(folder))
    for _ in range(count):
        value, mask = rng.choice(patterns)
        address = (value & mask) | (rng.getrandbits(48) & ~mask & ALL)
        if rng.random() < 0.5:
            address ^= 1 << rng.randrange(48)
        yield address


def fault(folder: Path, flow_control: str, rng: random.Random, count: int = 6) -> str:
    """Follow frames one by one; return what is wrong, or nothing."""
    walker = RuleReference(AnyOfOnePriority(folder))
    return undelivered(walker) or unsafe(walker, addresses(folder, rng, count), flow_control)


def undelivered(walker: RuleReference) -> str:
    """Return which frames do not reach those that they are for, and nobody else; or nothing."""
    for source, target in walker.pairs():
        fates = walker.fates(source, target)
        # What leaves where nothing is harms nobody.
        if {tuple(name for name in fate if name != CUT) for fate in fates} != {(target,)}:
            return f"{source} to {target}: {fates}"
    return "broadcasts" if walker.wrong_receivers() != (set(), False) else ""


def unsafe(walker: RuleReference, destinations: Iterable[int], flow_control: str) -> str:
    """Return whether frames to hosts, to all and to these addresses loop, or can deadlock."""
    every = [mac_value(host["mac"]) for host in walker.hosts.values()]
    for address in [*every, mac_value(BROADCAST), *destinations]:
        for host in walker.hosts:
            if any(LOOP in outcome for outcome in walker.sent(host, mac_text(address))):
                return f"a loop to {mac_text(address)}"
    return "a cycle" if walker.has_cycle(flow_control) else ""


def with_files_of(proof: str, folder: Path) -> str:
    """Return a proof for the files of another folder, with its evidence as it is."""
    lines = proof.splitlines()
    head = [line for line in lines[:2] if not line.startswith("file ")]
    rest = [line for line in lines[2:] if not line.startswith("file ")]
    return "".join(f"{line}\n" for line in [*head, *file_lines(folder), *rest])


@cache
def _intact_proof(files: tuple[tuple[str, str], ...]) -> str:
    """Return the proof of rules that are not damaged."""
    with TemporaryDirectory() as scratch:
        return proof_of(write_rules(Path(scratch) / "rules", dict(files)))


def trial_of_rules(files: Mapping[str, str], folder: Path, rng: random.Random) -> tuple[str, str]:
    """Damage rules, and judge them with the evidence of the intact ones, and with new evidence.

    Returns what the product says, and whether its proof, or only one of an adversary, was accepted.
    Asserts that what is accepted is right, as frames say that are followed one by one.
    """
    intact = _intact_proof(tuple(files.items()))
    control = flow_control_of(intact)
    changed: Mapping[str, str] = files
    kinds = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        kind, changed = damaged(changed, rng)
        kinds.append(kind)
    shutil.rmtree(folder, ignore_errors=True)
    write_rules(folder, changed)
    proofs = [with_files_of(intact, folder)]
    try:
        fabric, rules = read_dir(folder)
        state = state_of_rules(fabric, rules)
        verdict = verdict_of(state, control)
        product = "right" if verdict.ok else "undelivered" if verdict.acyclic else "cyclic"
        proofs.append(proof_of(folder, control))
    except KnotlessError:
        product = "refused"
    with suppress(KnotlessError):
        proofs.append(proof_of_product(folder, control))
    accepted = [proof for proof in proofs if judge(folder, proof).accepted]
    if not accepted:
        return product, "refused"
    wrong = fault(folder, control, rng)
    if "claim cycle" in accepted[-1]:
        assert wrong, kinds
        assert product == "cyclic", kinds
        assert len(accepted) == 1
        return product, "cycle accepted"
    assert not wrong, (kinds, wrong)
    assert product == "right", (kinds, product)
    return product, "accepted" if accepted[-1] == proofs[-1] else "accepted of an adversary"


def trial_of_files(files: Mapping[str, str], folder: Path) -> str:
    """Read files with the verifier's parser and with ours; returns who has read them.

    Asserts that what both read has one meaning, and that the verifier refuses in one line.
    """
    shutil.rmtree(folder, ignore_errors=True)
    write_rules(folder, files)
    verifier = run("--print", folder)
    try:
        fabric, rules = read_dir(folder)
    except KnotlessError:
        return "refused by ours" if verifier.accepted else "refused by both"
    if not verifier.accepted:
        assert verifier.text.startswith("knotless-verify: "), files
        assert verifier.text.count("\n") == 1, files
        return "refused by the verifier"
    assert sorted(verifier.text.splitlines()) == sorted(printed(fabric, rules)), files
    return "read by both, with one meaning"


def edges_of_folder(folder: Path, flow_control: str) -> list[tuple[str, str]]:
    """Return which queue can wait for which, by the names of proof files, as the product says."""
    fabric, rules = read_dir(folder)
    state = state_of_rules(fabric, rules)
    edges = waiting(edges_of(state), FlowControl(flow_control))
    name = state.channels.name
    return sorted({(name(*divmod(a, 16)), name(*divmod(b, 16))) for a, b in edges.tolist()})


def climbed_ranks(edges: list[tuple[str, str]], rng: random.Random, steps: int) -> dict[str, int]:
    """Return ranks of which few do not rise along an edge, by repairing one after the other."""
    nodes = sorted({node for edge in edges for node in edge})
    rank = {node: rng.randint(1, len(nodes)) for node in nodes}
    best, fewest = dict(rank), len(edges) + 1
    for _ in range(steps):
        wrong = [(a, b) for a, b in edges if rank[a] >= rank[b]]
        if len(wrong) < fewest:
            best, fewest = dict(rank), len(wrong)
        if not wrong:
            break
        a, b = rng.choice(wrong)
        if rng.random() < 0.5:
            rank[b] = rank[a] + 1
        else:
            rank[a] = max(1, rank[b] - 1)
    return best


def trial_of_cyclic(folder: Path, rng: random.Random, *, walk: bool = True) -> int:
    """Judge a fabric that can deadlock with several proofs that say otherwise; returns how many.

    Asserts that no such proof is accepted, and that the cycle is replayed which the product writes;
    if we ``walk``, also that frames find one that are followed one by one.
    """
    honest = proof_of(folder)
    control = flow_control_of(honest)
    assert not walk or fault(folder, control, rng)
    edges = edges_of_folder(folder, control)
    lines = honest.splitlines()
    without = [line for line in lines if not line.startswith(("rank ", "bound ", "class "))]
    classes = [line for line in lines if line.startswith("class ")]
    proofs = [honest]
    for _ in range(4):
        rank = climbed_ranks(edges, rng, 40)
        evidence = [f"bound {max(rank.values())}"]
        evidence += [f"rank {name} {number}" for name, number in rank.items()]
        proofs.append("\n".join([*without, *evidence, *classes]) + "\n")
        fewer = [line for line in classes if rng.random() < 0.9]
        proofs.append("\n".join([*without, *evidence, *fewer]) + "\n")
        wider = [_without_a_bit(line, rng) if rng.random() < 0.2 else line for line in classes]
        proofs.append("\n".join([*without, *evidence, *wider]) + "\n")
    for proof in proofs:
        assert judge(folder, proof).status == 1, proof
    cycle = judge(folder, proof_of_product(folder, control))
    assert cycle.replayed, cycle
    return len(proofs)


def cyclic_plan(rng: random.Random) -> dict[str, str]:
    """Return the files of a plan that can deadlock: others are drawn until one does."""
    while True:
        spec = rng.choice(
            [
                f"ring,{rng.randint(4, 8)}",
                f"torus,{rng.randint(3, 5)},{rng.randint(4, 5)}",
                f"random,{rng.randrange(6, 17, 2)},degree=3,hosts=1,seed={rng.randint(1, 999)}",
                f"torus,{rng.randint(4, 7)},hosts=2",
            ]
        )
        engine = rng.choice(["minimal", "dor"]) if spec.startswith("torus") else "minimal"
        choices = {"vcs": 1} if engine == "dor" else {}
        plan = make_plan(load(spec), engine, select=rng.choice(["spread", "low-port"]), **choices)
        rules = compile_rules(plan)
        if not verdict_of(state_of_rules(plan.fabric, rules)).acyclic:
            return dir_files(plan.fabric, rules)


def _without_a_bit(line: str, rng: random.Random) -> str:
    """Return a class with one bit less in its mask."""
    word, cube, *rest = line.split(" ")
    value, mask = map(mac_value, cube.split("/"))
    bits = [bit for bit in range(48) if mask >> bit & 1] or [0]
    mask &= ~(1 << rng.choice(bits))
    return " ".join([word, f"{mac_text(value & mask)}/{mac_text(mask)}", *rest])


class Evidence:
    """What a few lines of Python need to find a proof for intact rules right or wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proof = proof_of(folder)
        self.files = file_lines(folder)
        rng = random.Random(0)  # noqa: S311 - it only has to be repeatable
        self.probes = [*addresses(folder, rng, 100), 0, ALL, 1 << 40, *(1 << n for n in range(48))]
        walker = RuleReference(folder)
        for source in walker.hosts:
            walker.fates(source, "all")
            for target in walker.hosts:
                walker.fates(source, target)
            for address in self.probes[:20]:
                walker.sent(source, mac_text(address))
        self.edges = walker.edges

    def may_be_accepted(self, proof: str) -> bool:
        """Return False for a proof that is certainly wrong, whatever it says of its classes."""
        fields = [line.split(" ") for line in proof.splitlines()]
        rows: dict[str, list[list[str]]] = {}
        for word, *rest in fields:
            rows.setdefault(word, []).append(rest)
        if sorted(line for line in proof.splitlines() if line.startswith("file ")) != self.files:
            return False
        if rows.get("claim") != [["safe"]] or len(rows.get("flow-control", [])) != 1:
            return False
        [[control]] = rows["flow-control"]
        if control not in ("pause", "pfc", "credits"):
            return False
        lowest = {p: 0 if control == "pause" else p for p in range(8)}
        for first, last in (group[0].split("-") for group in rows.get("group", [])):
            lowest |= {p: int(first) for p in range(int(first), int(last) + 1)}
        rank = {name: int(number, 0) for name, number in rows.get("rank", [])}
        bound = int(rows["bound"][0][0], 0) if "bound" in rows else 1

        def rank_of(node: tuple[str, int, int]) -> int:
            switch, port, priority = node
            return rank.get(f"{switch}:{port}/{lowest[priority]}", 1)

        if not all(rank_of(a) < rank_of(b) <= bound for a, b in self.edges):
            return False
        cubes = [
            [tuple(map(mac_value, c.split("/"))) for c in row if c != "but"]
            for row in rows.get("class", [])
        ]
        return all(
            any(not (address ^ value) & mask for (value, mask), *_ in cubes)
            for address in self.probes
        )


def trial_of_proof(evidence: Evidence, rng: random.Random) -> tuple[str, bool]:
    """Damage a proof for intact rules; returns how, and whether it is accepted.

    Asserts that a proof is refused that is certainly wrong.
    """
    kind, proof = damaged_proof(evidence.proof, rng)
    judgement = judge(evidence.folder, proof)
    if judgement.accepted:
        assert evidence.may_be_accepted(proof), (kind, proof)
    else:
        assert judgement.text.startswith("knotless-verify: "), judgement
        assert judgement.text.count("\n") == 1, judgement
    return kind, judgement.accepted
