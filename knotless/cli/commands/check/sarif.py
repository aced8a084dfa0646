"""Verdicts as SARIF, the form in which tools of code review and pipelines take findings.

The form is OASIS SARIF 2.1.0. A finding is at the place of its first cause, and related to those of
the others. Without one it is at what was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knotless.base.files import write_whole
from knotless.base.package import version
from knotless.importers.causes import Place
from knotless.verification.check_state import ShownFailureTable
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.verdict_findings import RULES, Finding, findings

if TYPE_CHECKING:
    from knotless.verification.check import Verdict

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def write_sarif(
    file: str,
    verdict: Verdict | ImportedVerdict,
    table: ShownFailureTable | None,
    paths: Sequence[str],
    places: Mapping[str, Sequence[Place]],
) -> None:
    """Write the findings of a verdict on what was read from ``paths``; raises KnotlessError.

    ``places`` are those of the causes, by line.
    """
    values = sarif_of(findings(verdict, table), paths, places)
    write_whole(file, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def sarif_of(
    findings: Iterator[Finding], paths: Sequence[str], places: Mapping[str, Sequence[Place]]
) -> dict[str, Any]:
    """Return findings as a value for :func:`json.dumps`."""
    results = [_result(one, one.places(places) or [("", Place(paths[0]))]) for one in findings]
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


def _result(one: Finding, places: Sequence[tuple[str, Place]]) -> dict[str, Any]:
    _, first = places[0]
    result: dict[str, Any] = {
        "ruleId": one.rule,
        "ruleIndex": list(RULES).index(one.rule),
        "level": RULES[one.rule][0],
        "message": {"text": one.text},
        "partialFingerprints": {"finding/v1": one.identifier},
        "locations": [
            {
                "physicalLocation": _physical(first),
                "logicalLocations": [{"fullyQualifiedName": name} for name in one.channels],
            }
        ],
    }
    if len(places) > 1:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": line}, "physicalLocation": _physical(place)}
            for number, (line, place) in enumerate(places)
        ]
    return result


def _physical(place: Place) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": Path(place.file).as_posix()}}
    if place.line is not None:
        location["region"] = {"startLine": place.line}
        if place.column is not None:
            location["region"]["startColumn"] = place.column
    return location
