"""Folders of rules, proof files for them, and the program that judges these."""

from __future__ import annotations

import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from knotless.base.package import native
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import dir_files, read_dir, rule_files
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.routing.graphs.dependencies import waiting
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.numbering import mac_value
from knotless.verification.address_classes import Cube, address_classes
from knotless.verification.check import outcome_of, verdict_of
from knotless.verification.dependencies import edges_of
from knotless.verification.proof_failures import proven_failures
from knotless.verification.proof_file import VERSION, class_line, proof_text
from knotless.verification.proof_frames import sent_frames
from knotless.verification.proof_rules import destination_patterns
from tests.support import REPOSITORY
from tests.support.cycles import Node

PROOFS = REPOSITORY / "proofs"
VERIFIER = native("knotless-verify")
BUILT = pytest.mark.skipif(not VERIFIER.exists(), reason="needs ocamlopt: knotless-verify")
"""Mark of tests that call the program."""
ALL = (1 << 48) - 1


class Judgement(NamedTuple):
    """The exit status of the program, and what it has printed."""

    status: int
    text: str

    @property
    def accepted(self) -> bool:
        """Whether the fabric was accepted as safe."""
        assert self.status in (0, 1, 2), self
        return self.status == 0

    @property
    def replayed(self) -> bool:
        """Whether the cycle of the proof was seen in the rules."""
        return self.status == 1 and self.text.startswith("checked, not proven: ")


def run(*arguments: str | Path, memory_kib: int | None = None) -> Judgement:
    """Call the program, with no more memory than this."""
    limited = ["prlimit", f"--as={1024 * memory_kib}"] if memory_kib is not None else []
    done = subprocess.run(
        [*limited, VERIFIER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",
        check=False,
    )
    return Judgement(done.returncode, done.stdout)


def judge(folder: Path, proof: str, *later: Path) -> Judgement:
    """Call the program with a proof for a folder, and later ones; the file lies beside it."""
    file = folder.parent / f"{folder.name}.proof"
    file.write_text(proof)
    return run(folder, *later, file)


def write_rules(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a folder; returns it."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def files_of_plan(spec: str, **choices: Any) -> dict[str, str]:
    """Return the files of the rules of a plan by name."""
    plan = make_plan(load(spec), **choices)
    return dir_files(plan.fabric, compile_rules(plan))


def proof_of_product(folder: Path, flow_control: str = "auto") -> str:
    """Return the proof file that the product writes: raises ProofError if it does not."""
    fabric, rules = read_dir(folder)
    state = state_of_rules(fabric, rules)
    verdict = outcome_of(state, flow_control)
    failures = proven_failures(state, rules, verdict.flow_control) if verdict.safe else None
    sent = sent_frames(fabric, rules, verdict.flow_control)
    return proof_text(rule_files(folder), state, rules, verdict, failures, sent)


def proof_of(folder: Path, flow_control: str = "auto") -> str:
    """Return a proof file that claims that no deadlock is possible, as good as it can be.

    It is for an adversary, whatever the rules are: dependencies on a cycle have the ranks that are
    left.
    """
    fabric, rules = read_dir(folder)
    state = state_of_rules(fabric, rules)
    control = verdict_of(state, flow_control).flow_control
    rank: dict[int, int] = ranks(tuple(edge) for edge in waiting(edges_of(state), control).tolist())
    lines = [VERSION, f"flow-control {control.value}", *file_lines(folder)]
    lines += ["claim safe", f"bound {max(rank.values(), default=1)}"]
    lines += [f"rank {state.channels.name(*divmod(n, 16))} {rank[n]}" for n in sorted(rank)]
    hosts = {Cube(mac_value(host.mac), ALL) for host in fabric.hosts}
    return "\n".join([*lines, *class_lines(tested(folder), hosts)]) + "\n"


def class_lines(found: set[Cube], hosts: set[Cube]) -> Iterator[str]:
    """Yield classes of destinations that rules with some patterns treat alike."""
    return map(class_line, address_classes(found | hosts))


def file_lines(folder: Path) -> list[str]:
    """Return the lines with the sums of the files that count."""
    files = sorted(
        path
        for path in folder.iterdir()
        if path.suffix in (".flows", ".groups", ".bridge", ".routes", ".lft")
        or path.name == "fabric.json"
    )
    return [f"file {path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]


def ranks(edges: Iterable[tuple[Node, Node]]) -> dict[Node, int]:
    """Return for each node the number of nodes on the longest path to it."""
    after, missing = defaultdict[Node, set[Node]](set), defaultdict[Node, int](int)
    for a, b in set(edges):
        after[a].add(b)
        missing[b] += 1
    rank: dict[Node, int] = {a: 1 for a in after if not missing.get(a)}
    ready = list(rank)
    for a in ready:
        for b in after.get(a, ()):
            rank[b] = max(rank.get(b, 1), rank[a] + 1)
            missing[b] -= 1
            if not missing[b]:
                ready.append(b)
    return rank


def tested(folder: Path) -> set[Cube]:
    """Return the destinations that rules match."""
    return {*destination_patterns(file.read_text() for file in folder.glob("*.flows"))}
