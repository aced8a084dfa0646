"""The part of ``knotless check`` that proposes changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from knotless.base.files import folder_for_files, write_all
from knotless.importers.fabric import ImportedFabric
from knotless.verification.failure_models import TablesModel
from knotless.verification.failures import Certificate
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.remedies import Remedy, remedies_of

MOST_CHANGES = 10
"""Limit of the changes of a remedy that are printed; JSON has all."""


def proven_remedies(
    imported: ImportedFabric, verdict: ImportedVerdict, certificate: Certificate | None
) -> list[Remedy]:
    """Return the remedies; with a certificate, those that make all of its failures safe."""
    candidates = list(remedies_of(imported, verdict))
    if certificate is None or certificate.acyclic is True:
        return candidates
    return [remedy for remedy in candidates if _survives(remedy, certificate)]


def _survives(remedy: Remedy, certificate: Certificate) -> bool:
    if remedy.fabric is None:
        return certificate.reaction == "static"  # tables that stay gain no dependency
    if remedy.kind == "withdraw-routes" and certificate.reaction.startswith("bgp"):
        return False  # routing replaces these routes after a failure
    model = TablesModel(remedy.fabric, certificate.reaction)
    after = Certificate(model, certificate.max_failed, certificate.seed, certificate.limit)
    tried = islice(after.evaluate(), len(certificate.verdicts))
    return after.intact.acyclic is not False and all(
        verdict.acyclic is not False for verdict in tried
    )


def remedy_lines(remedies: Sequence[Remedy]) -> Iterator[str]:
    """Yield what people see of the remedies."""
    if not remedies:
        yield "no remedy was found"
    for number, remedy in enumerate(remedies, 1):
        cost = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in remedy.cost.items() if n)
        yield f"remedy {number} ({remedy.kind}): {remedy.text}; cost: {cost or 'none'}"
        for line in remedy.changes[:MOST_CHANGES]:
            yield f"  {line}"
        if len(remedy.changes) > MOST_CHANGES:
            yield f"  and {len(remedy.changes) - MOST_CHANGES} more"


def write_remedies(remedies: Sequence[Remedy], folder: str) -> Iterator[str]:
    """Write the files of each remedy to a folder of its own, ``NUMBER-KIND``.

    Yields a line for each folder.

    Raises
    ------
    KnotlessError
        A file cannot be written.

    """
    for number, remedy in enumerate(remedies, 1):
        if not remedy.files:
            continue
        remedy_folder = Path(folder, f"{number}-{remedy.kind}")
        with folder_for_files(remedy_folder):
            write_all({remedy_folder / name: text for name, text in remedy.files.items()})
        yield f"wrote {len(remedy.files)} files to {remedy_folder}"
