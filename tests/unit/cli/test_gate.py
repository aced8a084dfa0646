"""What of a check's findings stops a pipeline: accepted and ignored ones, and JUnit."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from knotless.cli.commands.check import gate
from knotless.cli.commands.check.gate import KINDS, Gate
from knotless.cli.commands.check.junit import junit_of
from knotless.cli.main import main
from knotless.verification.verdict_findings import RULES, Finding
from tests.support import REPOSITORY

KNOT = REPOSITORY / "tests" / "data" / "fabrics" / "control-knot"
LATER = "2999-12-31"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> Result:
    done = CliRunner(mix_stderr=False).invoke(main, list(words), prog_name="knotless")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def check(*words: str) -> Result:
    return call("check", *words)


def findings(*words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(check(*words, "--ignore", "", "--json").stdout)[
        "findings"
    ]
    return found


def accept(*entries: dict[str, Any]) -> tuple[str, str]:
    Path("accepted.yaml").write_text(json.dumps(list(entries)))
    return "--accept", "accepted.yaml"


def entry(identifier: str, **changes: Any) -> dict[str, Any]:
    return {"finding": identifier, "reason": "replaced in May", "until": LATER, **changes}


@pytest.fixture
def losing() -> str:
    """Return rules that do not deliver everything, on a fabric that cannot deadlock."""
    assert call("flows", "ring,4", "--engine", "updown", "--out", "rules").exit_code == 0
    Path("rules/s2.flows").write_text("")
    return "rules"


def test_a_cycle_stops_a_pipeline_unless_it_is_accepted_by_name() -> None:
    (one,) = findings(str(KNOT))
    assert (one["rule"], one["counts"]) == ("deadlock", True)
    assert check(str(KNOT), "--ignore", ",".join(KINDS)).exit_code == 1
    done = check(str(KNOT), *accept(entry(one["finding"])))
    first = done.stdout.splitlines()[0]
    assert done.exit_code == 0
    assert "CAN DEADLOCK" in first
    assert first.endswith(", 1 finding accepted")
    assert f"accepted until {LATER}: {one['finding']}: replaced in May" in done.stdout
    as_json = json.loads(check(str(KNOT), *accept(entry(one["finding"])), "--json").stdout)
    assert as_json["safe"] is False
    assert as_json["findings"][0]["counts"] is False


def test_an_identifier_is_the_same_in_every_form_and_for_every_packet() -> None:
    (one,) = findings(str(KNOT))
    check(str(KNOT), "--sarif", "f.sarif")
    (result,) = json.loads(Path("f.sarif").read_text())["runs"][0]["results"]
    assert result["partialFingerprints"] == {"finding/v1": one["finding"]}
    assert one["finding"] in check(str(KNOT), "--details").stdout
    ring = ("s1:1/0", "s2:1/0")
    turned = [Finding("deadlock", text, names) for text, names in (("a", ring), ("b", ring[::-1]))]
    assert turned[0].identifier == turned[1].identifier
    others = [Finding("deadlock", "a", ring[:1]), Finding("unknown", "a", ring)]
    assert len({one.identifier for one in [turned[0], *others]}) == 3


def test_ignored_kinds_do_not_count_and_are_named_first(losing: str) -> None:
    assert check(losing).exit_code == 1
    assert check(losing, "--ignore", "unknown,loss").exit_code == 1
    done = check(losing, "--ignore", "Delivery, unknown")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0].endswith("not all is delivered, delivery ignored")
    several = findings(losing)
    assert len(several) > 1
    some = accept(*(entry(one["finding"]) for one in several[1:]))
    assert check(losing, *some).exit_code == 1
    every = accept(*(entry(one["finding"]) for one in several))
    assert check(losing, *every).exit_code == 0


def test_an_accepted_finding_that_is_gone_is_named() -> None:
    assert call("flows", "ring,4", "--engine", "updown", "--out", "rules").exit_code == 0
    done = check("rules", *accept(entry("deadlock-0123456789ab")))
    assert done.exit_code == 0
    assert "accepted, and not found any more: deadlock-0123456789ab" in done.stdout
    assert "accepted" not in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("{}", "a list of entries with finding, reason, until is needed"),
        ("[1]", "entry 1: it needs finding, reason, until, and nothing else"),
        ([{"finding": "x", "until": LATER}], "entry 1: it needs"),
        ([entry("x"), entry("y", more=1)], "entry 2: it needs"),
        ([entry("x", reason=" ")], "finding and reason are texts"),
        ([entry("x", until="May")], "'May' is no day"),
        ([entry("x", until=5)], "until: is no day"),
        ([entry("x", until="2026-01-01")], "x: accepted until 2026-01-01, which is over"),
        ("[", "accepted.yaml"),
    ],
)
def test_a_list_that_does_not_fit_is_an_error(value: Any, line: str, losing: str) -> None:
    Path("accepted.yaml").write_text(value if isinstance(value, str) else json.dumps(value))
    done = check(losing, "--accept", "accepted.yaml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_last_day_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = findings(str(KNOT))
    options = accept(entry(one["finding"], until="2027-01-31"))
    for day, status in ((30, 0), (31, 0)):
        monkeypatch.setattr(gate, "today", lambda day=day: datetime.date(2027, 1, day))
        assert check(str(KNOT), *options).exit_code == status
    monkeypatch.setattr(gate, "today", lambda: datetime.date(2027, 2, 1))
    assert check(str(KNOT), *options).exit_code == 2


def test_kinds_that_do_not_exist_are_an_error(losing: str) -> None:
    done = check(losing, "--ignore", "deadlock")
    assert done.exit_code == 2
    assert "'unknown', 'loss', 'delivery', 'failures'" in done.stderr


def cases(text: str) -> dict[str, str]:
    """Return what each test case of a file is: passed, failure or skipped."""
    (suite,) = ElementTree.fromstring(text)  # noqa: S314 - our own
    assert suite.get("tests") == str(len(suite))
    outcomes = {case.get("name", ""): case[0].tag if len(case) else "passed" for case in suite}
    for outcome, key in (("failure", "failures"), ("skipped", "skipped")):
        assert [*outcomes.values()].count(outcome) == int(suite.get(key, "")), key
    return outcomes


def test_rules_are_test_cases(losing: str) -> None:
    names = {rule for rule, (level, _) in RULES.items() if level != "note"}
    for option, outcome in ((), "failure"), (("--ignore", "delivery"), "skipped"):
        check(losing, *option, "--junit", "j.xml")
        outcomes = cases(Path("j.xml").read_text())
        assert outcomes == dict.fromkeys(names, "passed") | {"not-delivered": outcome}
    assert "tests: j.xml" in check(losing, "--junit", "j.xml").stdout


def test_what_xml_does_not_have_is_replaced() -> None:
    text = "a \x00 b \x1b[2J <&> \ufffe"
    outcomes = junit_of("x\x07", Gate([Finding("unknown", text)]))
    assert cases(outcomes)["unknown"] == "failure"
    assert "a ? b ?[2J &lt;&amp;&gt; ?" in outcomes
