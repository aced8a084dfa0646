"""``knotless verify``: have the proven checker judge a proof of ``knotless check --proof``."""

from __future__ import annotations

import subprocess
import sys

import click

from knotless.base.errors import ProofError
from knotless.cli.commands._proven import PROGRAM, verifier
from knotless.cli.output import say

EXAMPLE = """\b
Example: knotless check rules --proof rules.proof
         knotless verify rules rules.proof
         knotless change ring,6 --from dor --engine dl --proofs steps
         knotless verify steps/0 steps/1 steps/1.proof
"""


@click.command("verify", epilog=EXAMPLE)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.argument("proof", metavar="F")
def command(paths: tuple[str, ...], proof: str) -> None:
    """Check the proof F of the rules, or routes, in the directory PATH.

    Of a step of knotless change, PATH... are the directories of the rules before and after it, and
    before these of rules that frames may still meet.

    A program of its own does it, knotless-verify, which has its own reader of these. Its checker is
    proven in Coq and shares nothing with knotless check. The exit status is 0 if what F claims is
    proven, 1 if the proof is refused or shows a cycle, 2 if it cannot be read. See
    docs/explanation/proof.md.
    """
    done = subprocess.run(
        [verifier(), *paths, proof], capture_output=True, text=True, errors="replace", check=False
    )
    message = done.stderr.strip().removeprefix(f"{PROGRAM}: ")
    if done.returncode not in (0, 1):
        raise ProofError(message or f"{PROGRAM} has ended with status {done.returncode}")
    if done.stdout:
        say(done.stdout.rstrip("\n"))
    if message:
        say(f"knotless: {message}", err=True)
    sys.exit(done.returncode)
