"""Proof files for the steps of a change, beside the rules of each step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from knotless.base.errors import KnotlessError, ProofError
from knotless.base.files import write_whole
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.directory import read_dir, read_multicast, read_tags, rule_files
from knotless.verification.proof_steps import StepProof, step_proof


def write_step_proofs(directory: str | Path, record: Mapping[str, Any]) -> list[str]:
    """Write ``directory/k.proof`` for each step k that can be proven.

    ``directory`` has the rules before the change and after each step, in folders ``0``, ``1`` and
    so on, and ``record`` is what was proven. Proofs of earlier changes are removed.

    Returns
    -------
    list of str
        A line for each step: what its proof claims, or why there is none.

    Raises
    ------
    ProofError
        A file cannot be written or removed.

    """
    parent, lines = Path(directory), list[str]()
    for step in record["steps"]:
        number = step["step"]
        file = parent / f"{number}.proof"
        try:
            folders = _folders(parent, step)
            proof = _proof_of(folders, FlowControl(record["flow_control"]))
        except KnotlessError as error:
            _remove(file)
            lines.append(f"step {number}: NO PROOF: {error}")
            continue
        write_whole(file, proof.text, ProofError)
        claim = "" if proof.delivers else "; not that frames arrive, of which mixtures lose some"
        words = " ".join(map(str, [*folders, file]))
        lines.append(f"step {number}: proof of no deadlock{claim}: knotless verify {words}")
    later = len(lines) + 1
    while (file := parent / f"{later}.proof").exists():
        _remove(file)
        later += 1
    return lines


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise ProofError(f"{file}: {error.strerror}") from error


def _folders(parent: Path, step: Mapping[str, Any]) -> list[Path]:
    """Return the folders of the rules that frames can meet in a step, oldest first.

    Raises ProofError if some may be older than what is installed when the change begins.
    """
    first = step["step"] + 1 - step["generations"]
    if first < 0:
        raise ProofError(
            "frames may still meet rules of an earlier change: repeat it when these have left"
        )
    return [parent / str(number) for number in range(first, step["step"] + 1)]


def _proof_of(folders: list[Path], control: FlowControl) -> StepProof:
    read = [read_dir(folder) for folder in folders]
    fabric = read[-1][0]
    if any(read_tags(fabric, folder) is not None for folder in folders):
        raise ProofError("proofs do not cover hosts that tag their frames")
    return step_proof(
        [rule_files(folder) for folder in folders],
        fabric,
        [rules for _, rules in read],
        control,
        read_multicast(fabric, folders[-1]),
    )
