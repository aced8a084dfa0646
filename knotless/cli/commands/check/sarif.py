"""Verdicts as SARIF, the form in which tools of code review and pipelines take findings.

The form is OASIS SARIF 2.1.0. A finding is at the file of the switch that its line begins with, or
else at what was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knotless.base.files import write_whole
from knotless.base.package import version
from knotless.verification.check_state import ShownFailureTable
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.verdict_findings import RULES, Finding, findings

if TYPE_CHECKING:
    from knotless.verification.check import Verdict

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_FILES = 100_000


def write_sarif(
    file: str,
    verdict: Verdict | ImportedVerdict,
    table: ShownFailureTable | None,
    paths: Sequence[str],
) -> None:
    """Write the findings of a verdict on what was read from ``paths``; raises KnotlessError."""
    values = sarif_of(findings(verdict, table), paths)
    write_whole(file, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def sarif_of(findings: Iterator[Finding], paths: Sequence[str]) -> dict[str, Any]:
    """Return findings as a value for :func:`json.dumps`."""
    files = _files_by_switch(paths)
    results = [
        {
            "ruleId": one.rule,
            "ruleIndex": list(RULES).index(one.rule),
            "level": RULES[one.rule][0],
            "message": {"text": one.text},
            "partialFingerprints": {"finding/v1": one.identifier},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": files.get(one.text.split(":")[0], paths[0])}
                    },
                    "logicalLocations": [{"fullyQualifiedName": name} for name in one.channels],
                }
            ],
        }
        for one in findings
    ]
    rules = [
        {
            "id": name,
            "shortDescription": {"text": meaning},
            "defaultConfiguration": {"level": level},
        }
        for name, (level, meaning) in RULES.items()
    ]
    driver = {"name": "knotless", "version": version(), "rules": rules}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _files_by_switch(paths: Sequence[str]) -> Mapping[str, str]:
    """Return the file, or folder, in ``paths`` that has the name of a switch."""
    inside = (file for path in paths for file in [Path(path), *Path(path).rglob("*")])
    files: dict[str, str] = {}
    for file in islice(inside, MOST_FILES):
        files.setdefault(file.name.split(".")[0], file.as_posix())
    return files
