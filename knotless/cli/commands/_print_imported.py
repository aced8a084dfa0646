"""The verdict on an imported fabric, printed, and written for code review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from knotless.base.printable import listed
from knotless.cli.answer import Reason, Several
from knotless.cli.commands._print_verdict import print_verdict
from knotless.cli.commands._sarif import write_sarif
from knotless.verification.check_state import ShownCertificate
from knotless.verification.imported_verdict import ImportedVerdict

if TYPE_CHECKING:
    from knotless.simulation.freezing import Freeze
    from knotless.verification.remedies import Remedy

NOTES = 2
"""Notes of a kind that a terminal shows."""


def print_imported(
    verdict: ImportedVerdict,
    paths: Sequence[str],
    hosts: Sequence[str],
    routes_by: str | None,
    certificate: ShownCertificate | None,
    *,
    remedies: Sequence[Remedy] | None = None,
    freeze: Freeze | None = None,
    sarif: str | None,
    details: bool,
    as_json: bool,
) -> NoReturn:
    """Print a verdict on ``paths``; exit with status 1 unless all is well."""
    if sarif is not None:
        write_sarif(sarif, verdict, certificate, paths)
    options = [text for pattern in hosts for text in ("--hosts", pattern)]
    options += [] if routes_by is None else ["--routes", routes_by]
    print_verdict(
        verdict,
        [*paths, *options],
        _figures(verdict),
        [*_notes(verdict)],
        certificate=certificate,
        remedies=remedies,
        freeze=freeze,
        details=details,
        as_json=as_json,
    )


def _figures(verdict: ImportedVerdict) -> dict[str, object]:
    values = verdict.as_json()
    for key in (
        *("fabric", "problems", "witnesses", "missing", "notes", "ignored", "vcs"),
        *("losses", "assumes", "unread", "not_read"),
    ):
        values.pop(key)
    for key in ("acyclic", "safe"):
        values[key] = "unknown" if values[key] is None else values[key]
    for vc, acyclic in verdict.vcs.items():
        values[f"virtual channel {vc}"] = "safe" if acyclic else "has a cycle"
    return values


def _notes(verdict: ImportedVerdict) -> Iterator[Reason]:
    unsafe = [vc for vc, acyclic in verdict.vcs.items() if not acyclic]
    if len(unsafe) > 1:
        yield f"each of the virtual channels {', '.join(unsafe)} has a cycle of its own"
    yield Several([f"note: {line}" for line in verdict.notes], "notes", NOTES)
    yield Several([*not_read_lines(verdict.not_read)], "reasons why files were not read", NOTES)


def not_read_lines(not_read: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield the files that were not read, those with the same reason in one line."""
    by_reason: dict[str, list[str]] = {}
    for file in not_read:
        why = file["reason"] + (f" (instead: {file['command']})" if file["command"] else "")
        by_reason.setdefault(why, []).append(file["file"])
    for why, files in by_reason.items():
        yield f"not read: {listed(files, 5)}: {why}"
