"""``knotless verify``: have the proven checker judge a proof of ``knotless check --proof``."""

from __future__ import annotations

import subprocess
import sys

import click

from knotless.cli.commands._proven import verifier

EXAMPLE = """\b
Example: knotless check rules --proof rules.proof
         knotless verify rules rules.proof
"""


@click.command("verify", epilog=EXAMPLE)
@click.argument("path")
@click.argument("proof", metavar="F")
def command(path: str, proof: str) -> None:
    """Check the proof F of the rules in the directory PATH.

    A program of its own does it, knotless-verify, which has its own reader of rules. Its checker is
    proven in Coq and shares nothing with knotless check. The exit status is 0 if the proof is
    accepted, 1 if it is refused, 2 if it cannot be read. See docs/explanation/proof.md.
    """
    program = verifier()
    sys.stdout.flush()
    sys.exit(subprocess.run([program, path, proof], check=False).returncode)
