"""Exports that tests verify from their files and apply on a real kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from knotless.cli.main import main
from knotless.forwarding.dot1q.model import L2Fabric
from knotless.forwarding.dot1q.state import states_of_dot1q
from knotless.verification.check import Verdict, verdict_of

FABRICS = [
    # The fabric, and an engine with tagging by switches and one with tagging by hosts: on many
    # fabrics the paths of most engines from one host close loops, so that only hosts can tag.
    ("flat,5", "updown", "updown"),
    ("ring,6", "updown", "lturn"),
    ("mesh,4,4", "dor", "dor"),
    ("mesh,3,3", "prefix", "updown"),
    ("mesh,2,4,hosts=2", "dor", "lturn"),
    ("mesh,3,3,2", "dor", "rturn"),
    ("torus,4,4", "prefix", "updown"),
    ("torus,5,5", "prefix", "dl --vcs 1"),
    ("mtree,4,4", "updown", "prefix"),
    ("clos,3,hosts=2", "updown", "lturn"),
    ("clos,4,hosts=2", "updown", "updown"),
    ("clos,8,hosts=2", "updown", "updown"),
    ("fattree,2,4,2", "smodk", "fattree"),
    ("fattree3,4", "smodk", "fattree"),
    ("lsft,2", "lsft", "lsft"),
    ("lsft,3", "lsft", "lsft"),
    ("irregular-a", "prefix", "lturn"),
    ("irregular-b,hosts=2", "prefix", "updown"),
    ("random,12,degree=3,seed=4,hosts=1", "prefix", "dl --vcs 1"),
    ("random,16,degree=4,seed=7,hosts=2", "prefix", "rturn"),
]
EXPORTS = [
    f"{spec} --engine {engine} --tagging {tagging}"
    for spec, *engines in FABRICS
    for tagging, engine in zip(("switch", "host"), engines, strict=True)
]


def export_to(folder: Path, arguments: str) -> dict[str, Any]:
    """Run ``knotless export`` and return its output."""
    words = ["export", *arguments.split(), "--to", "l2", "--out", str(folder), "--json"]
    done = CliRunner(mix_stderr=False).invoke(main, words)
    assert done.exit_code == 0, done.stderr
    output: dict[str, Any] = json.loads(done.stdout)
    return output


def verdicts_of(exported: L2Fabric) -> dict[str, Verdict]:
    """Return the verdicts under PAUSE for hosts' untagged and, if they tag, tagged frames."""
    states = states_of_dot1q(exported)
    return {how: verdict_of(state, "pause") for how, state in states.items()}


def is_good(exported: L2Fabric) -> bool:
    """Return whether all tagged and untagged frames are delivered, and nothing can deadlock."""
    return all(verdict.ok for verdict in verdicts_of(exported).values())
