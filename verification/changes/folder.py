"""The rule sets of a change as folders, so that anyone can check them."""

from __future__ import annotations

import json
from pathlib import Path

from common.errors import RuleError
from common.files import write_all
from forwarding.openflow.directory import write_dir
from verification.changes.certificate import certificate
from verification.changes.change import Change

CERTIFICATE = "certificate.json"


def write_steps(change: Change, directory: str | Path) -> None:
    """Write all rules before the change to ``directory/0``, those after step k to ``directory/k``.

    Each folder is in the format of ``knotless flows``. The certificate is next to them.

    Raises
    ------
    RuleError
        A folder or file cannot be written.

    """
    folder, before = Path(directory), change.before
    held = [(before.rules, before.tags), *((step.rules, step.tags) for step in change.steps)]
    for number, (rules, tags) in enumerate(held):
        write_dir(before.fabric, rules, folder / str(number), before.multicast, tags)
    text = json.dumps(certificate(change), indent=1) + "\n"
    write_all({folder / CERTIFICATE: text}, RuleError)
