"""Verdicts as SARIF: what is found, at which file, and nothing where all is well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.commands.check.sarif import sarif_of
from knotless.cli.main import main
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


@pytest.mark.parametrize(
    ("text", "uri"),
    [("leaf1: no reserve", "leaf1.json"), ("all is lost", ""), ("leaf1", "leaf1.json")],
)
def test_a_finding_is_at_the_file_of_the_switch_that_it_begins_with(
    text: str, uri: str, tmp_path: Path
) -> None:
    (tmp_path / "leaf1.json").write_text("{}")
    values = sarif_of(iter([Finding("note", text)]), [str(tmp_path)])
    place = values["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert Path(place["artifactLocation"]["uri"]) == tmp_path / uri
