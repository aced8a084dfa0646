"""Verdicts as SARIF: what is found, at which file, and nothing where all is well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from knotless.cli.commands.check.sarif import sarif_of
from knotless.cli.main import main
from knotless.importers.causes import Place
from knotless.verification.verdict_findings import RULES, Finding

CYCLIC = ("ring,4", "--engine", "dor", "--vcs", "1", "--select", "low-port")


def said(*words: str) -> int:
    return CliRunner(mix_stderr=False).invoke(main, list(words)).exit_code


def results(file: Path) -> list[dict[str, Any]]:
    values = json.loads(file.read_text())
    assert values["version"] == "2.1.0"
    (run,) = values["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == RULES[result["ruleId"]][0]
        assert result["message"]["text"]
        assert len(result["locations"]) == 1
    found: list[dict[str, Any]] = run["results"]
    return found


def test_a_cycle_is_an_error_with_its_channels_and_packets(tmp_path: Path) -> None:
    rules, file = tmp_path / "rules", tmp_path / "f.sarif"
    said("flows", *CYCLIC, "--out", str(rules))
    assert said("check", str(rules), "--sarif", str(file)) == 1
    (result,) = results(file)
    assert (result["ruleId"], result["level"]) == ("deadlock", "error")
    assert "h1 to h3 holds s1:2/0 while it waits for s2:2/0" in result["message"]["text"]
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == str(rules)
    names = [one["fullyQualifiedName"] for one in place["logicalLocations"]]
    assert names == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]


def test_what_is_not_delivered_is_an_error(tmp_path: Path) -> None:
    rules, file = tmp_path / "rules", tmp_path / "f.sarif"
    said("flows", "ring,4", "--engine", "updown", "--out", str(rules))
    (rules / "s2.flows").write_text("")
    assert said("check", str(rules), "--sarif", str(file)) == 1
    found = results(file)
    assert {result["ruleId"] for result in found} == {"not-delivered"}


def test_a_safe_fabric_has_no_findings(tmp_path: Path) -> None:
    rules, file = tmp_path / "rules", tmp_path / "f.sarif"
    said("flows", "ring,4", "--engine", "updown", "--out", str(rules))
    assert said("check", str(rules), "--sarif", str(file)) == 0
    assert results(file) == []


def test_a_deadlock_after_a_failure_is_an_error(tmp_path: Path) -> None:
    rules, file = tmp_path / "rules", tmp_path / "f.sarif"
    said("flows", "mesh,3,3", "--engine", "updown", "--out", str(rules))
    reaction = ("--failures", "1", "--react", "engine", "--engine", "minimal")
    assert said("check", str(rules), *reaction, "--sarif", str(file)) == 1
    (result,) = results(file)
    assert result["ruleId"] == "deadlock-after-failure"
    assert "CAN DEADLOCK" in result["message"]["text"]


def test_a_finding_is_at_its_first_cause_and_related_to_the_others() -> None:
    places = {"a step": [Place("leaf1.json", 3, 7, "/PORT"), Place("leaf2.json")]}
    values = sarif_of(iter([Finding("deadlock", "a cycle", (), ["a step"])]), ["all"], places)
    (result,) = values["runs"][0]["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "leaf1.json"},
        "region": {"startLine": 3, "startColumn": 7},
    }
    related = [one["physicalLocation"]["artifactLocation"] for one in result["relatedLocations"]]
    assert related == [{"uri": "leaf1.json"}, {"uri": "leaf2.json"}]


def test_a_finding_without_a_cause_is_at_what_was_read() -> None:
    values = sarif_of(iter([Finding("note", "all is lost")]), ["all"], {})
    place = values["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "all"}}
