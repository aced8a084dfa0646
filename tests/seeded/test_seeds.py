"""Seeds of the tiers, those that are known to fail, and the files of many runs."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from bench.support.entry import about
from knotless.controller.status import Status
from tests.seeded.__main__ import parsed, results_of, settings_of
from tests.seeded.campaign import one
from tests.seeded.faults import Fault
from tests.seeded.known import KNOWN, KnownFailure
from tests.seeded.limits import line_of, tables
from tests.seeded.run import Result, run
from tests.seeded.settings import FABRICS, OPTIONS, drawn_setting
from tests.seeded.summary import summed, table_of
from tests.seeded.world import Setting
from tests.support import REPOSITORY

RUNS, GATE_RUNS = 50, 8
"""Fifty are about five minutes of one core."""


def _assert_all_is_well(result: Result) -> None:
    lines = "\n".join(map(str, result.violations))
    assert not result.violations, f"{lines}\n\nto repeat it: {result.setting.command}"


@pytest.mark.seeds(RUNS, gate=GATE_RUNS)
def test_a_seed_violates_nothing(seed: int) -> None:
    """Lines that no table allows are for ``make seeds`` to find: their table is not complete."""
    result = run(drawn_setting(seed))
    unlisted = ("no line of the table", "no fault explains it")
    grave = [each for each in result.violations if not each.text.startswith(unlisted)]
    _assert_all_is_well(replace(result, violations=grave))


class KnownViolation(AssertionError):  # noqa: N818 - it is what is expected
    """A run has violated what it is known to violate, and nothing else."""


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(
            known,
            id=known.options,
            marks=pytest.mark.xfail(strict=True, raises=KnownViolation, reason=known.reason),
        )
        for known in KNOWN
    ]
    or [pytest.param(None, marks=pytest.mark.skip(reason="none is known"))],
)
def test_a_known_failure_is_still_there(known: KnownFailure) -> None:
    (result,) = results_of(parsed(shlex.split(known.options)))
    if {violation.kind for violation in result.violations} == {known.kind}:
        raise KnownViolation(known.reason)
    _assert_all_is_well(result)


def test_the_command_of_a_run_gives_its_setting() -> None:
    settings = [drawn_setting(seed) for seed in range(60)]
    settings += [replace(setting, judged=False) for setting in settings[:4]]
    for setting in settings:
        words = shlex.split(setting.command)
        assert words[:3] == ["python", "-m", "tests.seeded"]
        assert settings_of(parsed(words[3:])) == [setting]


def test_settings_are_drawn_of_all_kinds() -> None:
    settings = [drawn_setting(seed) for seed in range(300)]
    drawn = {",".join(setting.fabric.split(",seed=")[:1]) for setting in settings}
    assert drawn == set(FABRICS)
    assert {setting.controllers for setting in settings} == {1, 2, 3}
    assert {setting.options for setting in settings} == set(OPTIONS)
    assert {setting.emulator for setting in settings} == {False, True}


def test_the_page_has_the_tables_of_limits() -> None:
    page = (REPOSITORY / "docs/seeded-controllers.md").read_text()
    assert "\n".join(tables()) in page


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("link s1:2-s2:3 is down", True),
        ("link s1:2-s2:3 is down, or not", False),
        ("s1 (dpid 1) is not connected", True),
        ("something else", False),
    ],
)
def test_lines_of_problems_are_told_apart(text: str, *, is_known: bool) -> None:
    assert (line_of(text) is not None) == is_known


def test_a_line_that_is_missing_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that no table has."""
    cut = [Fault(5.0, "cut", ("s1:2-s2:3",), 5.0)]
    assert not run(Setting(1), cut, seconds=12).violations
    for lines in ([], ["all is well"]):
        monkeypatch.setattr(Status, "problems", lambda *_, lines=lines: lines)
        violations = run(Setting(1), cut, seconds=12).violations
        texts = [each.text for each in violations if each.kind == "line"]
        assert "missing for a link without a carrier: s1:2-s2:3" in texts
        assert ("no line of the table: all is well" in texts) == bool(lines)


@pytest.mark.deep
def test_runs_without_invariants_are_the_same(tmp_path: Path) -> None:
    """And files of both are summed up by fabric."""
    kept = [one(seed, "ring,4", judged=judged) for seed in (1, 2) for judged in (True, False)]
    assert [run["digest"] for run in kept[::2]] == [run["digest"] for run in kept[1::2]]
    file = tmp_path / "seeds.jsonl"
    file.write_text("".join(json.dumps(run) + "\n" for run in kept))
    figures = summed(map(json.loads, file.read_text().splitlines()))
    for row in figures["rows"]:
        assert row["fabric"] == "ring,4"
        assert row["speed"] > 0
        assert row["speed_unjudged"] > 0
    faults = sum(sum(run["faults"].values()) for run in kept if run["judged"])
    assert sum(kind["faults"] for kind in figures["kinds"]) == faults
    lines = table_of({**figures, **about()})
    assert any("`ring,4`" in line for line in lines)
