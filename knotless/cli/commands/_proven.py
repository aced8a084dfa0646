"""The program that judges proofs, and what it says of the rules of a running fabric."""

from __future__ import annotations

import subprocess
from pathlib import Path

from knotless.base.errors import ProofError
from knotless.base.package import native
from knotless.base.printable import listed
from knotless.emulation.names import Names

PROGRAM = "knotless-verify"
_SHOWN = 4


def verifier() -> Path:
    """Return the path of the program; raises ProofError if it is not built."""
    program = native(PROGRAM)
    if not program.is_file():
        raise ProofError(
            f"{PROGRAM} is not built: run apt-get install ocaml-nox, then tools/setup.sh"
        )
    return program


def reason_not_proven(names: Names) -> str:
    """Return why the rules that the switches of a fabric hold are not proven safe; empty: they are.

    The rules and their proof are written to the state directory, ``proof.rules`` and ``proof``. Of
    rules with fast-failover groups, the failures that they provide for have to be proven as well.
    Raises RuleError if the switches cannot be read.
    """
    from knotless.cli.commands.check.proof import Proven, write_proof
    from knotless.emulation.ovs_dump import live_multicast, read_live
    from knotless.forwarding.openflow.directory import read_tags
    from knotless.forwarding.openflow.reader import state_of_rules
    from knotless.verification.check import verdict_of

    fabric, rules, in_use = read_live(names.name)
    tags = read_tags(fabric, names.directory)
    state = state_of_rules(fabric, rules, live_multicast(fabric, names.name), tags)
    verdict = verdict_of(state, in_use)
    if not verdict.safe:
        return f"it {verdict.text}"
    try:
        proof = write_proof(
            str(names.directory / "proof"), Proven(fabric, rules, state, verdict, tags), None
        )
    except ProofError as error:
        return str(error)
    if proof.failures is not None and (names_of_failures := proof.failures.can_deadlock):
        return f"frames can deadlock after the failure of {listed(names_of_failures, _SHOWN)}"
    command = [str(verifier()), proof.rules, proof.file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return (done.stderr or done.stdout).strip().split("\n")[0] or f"{PROGRAM} has failed"
