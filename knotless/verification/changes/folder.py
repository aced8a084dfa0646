"""The rule sets of a change as folders, so that anyone can check them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from knotless.base.errors import RuleError
from knotless.base.files import write_all
from knotless.forwarding.openflow.directory import dir_files, write_files
from knotless.verification.changes.certificate import certificate
from knotless.verification.changes.change import Change

CERTIFICATE = "certificate.json"


def step_files(change: Change) -> list[dict[str, str]]:
    """Return the files of the rules before the change, and of those after each step, by name."""
    before = change.before
    held = [(before.rules, before.tags), *((step.rules, step.tags) for step in change.steps)]
    return [dir_files(before.fabric, rules, before.multicast, tags) for rules, tags in held]


def write_steps(change: Change, directory: str | Path) -> None:
    """Write all rules before the change to ``directory/0``, those after step k to ``directory/k``.

    Each folder is in the format of ``knotless flows``. The certificate is next to them.

    Raises
    ------
    RuleError
        A folder or file cannot be written.

    """
    write_step_files(step_files(change), certificate(change), directory)


def write_step_files(
    files: Sequence[Mapping[str, str]], proof: Mapping[str, object], directory: str | Path
) -> None:
    """Write what :func:`step_files` returned, and the certificate; raises RuleError."""
    for number, of_step in enumerate(files):
        write_files(of_step, Path(directory) / str(number))
    write_all({Path(directory) / CERTIFICATE: json.dumps(proof, indent=1) + "\n"}, RuleError)
