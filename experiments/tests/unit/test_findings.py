"""The findings in the report of a run: it must state when results are not as expected."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.tests.support.deadlock_rows import KNOT, row
from knotless.emulation import virtual_clock
from knotless.topologies import load
from knotless_experiments.framework import real_time
from knotless_experiments.framework.excluded_runs import (
    SLOWER,
    too_late_for_tcp,
    without_virtual_time,
)
from knotless_experiments.framework.routed import with_validity
from knotless_experiments.studies.deadlock.columns import COLUMNS
from knotless_experiments.studies.deadlock.presentation import present, sentences
from tests.support import REPOSITORY


def findings(*rows: dict[str, object]) -> str:
    return " ".join(sentences(list(rows)))


def test_a_deadlock_is_reported_with_its_knot_and_prediction() -> None:
    text = findings(*[row("cyclic", "pause", repeat=i) for i in range(1, 11)])
    assert "froze in 10 of 10 runs" in text
    assert " ".join(KNOT) in text
    assert "exactly the knot that the static check had predicted" in text
    assert "0 frames were lost" in text


def test_an_unpredicted_knot_is_reported() -> None:
    text = findings(row("cyclic", "pause", predicted_cycle=["s1:3/0", "s4:3/0"]))
    assert "not always the knot" in text
    assert "exactly" not in text
    assert "NOT predicted" in " ".join(
        COLUMNS.table([row("cyclic", "pause", predicted_cycle=[])])[0],
    )


def test_runs_that_did_not_freeze_are_counted() -> None:
    moving = row("cyclic", "pause", deadlock=False, cycle=[], flows_mbps=[4.7] * 4)
    assert "froze in 1 of 2 runs" in findings(row("cyclic", "pause"), moving)
    assert "did not freeze" in findings(moving)


def test_findings_on_acyclic_routes_follow_the_rows() -> None:
    good = findings(row("acyclic", "pause"))
    assert "did not freeze" in good
    assert "lost no frame" in good
    assert "within 0.1 % of its fair share" in good
    bad = findings(row("acyclic", "pause", lost_frames=3, flows_mbps=[4.0] * 4))
    assert "LOST 3 frames" in bad
    assert "16.2 % off" in bad
    assert "FROZE" in findings(row("acyclic", "pause", deadlock=True, frozen_after_s=1.0))


def test_invalid_runs_are_excluded_and_reported() -> None:
    late = row("acyclic", "pause", valid=False, problems=["late"], flows_mbps=[1.0] * 4)
    text = findings(row("acyclic", "pause"), late)
    assert "excluded from these findings: 1 of 2 runs" in text
    assert "within 0.1 %" in text
    assert COLUMNS.table([late])[0][-2:] == ["NO", "late"]
    assert "--slow-down" not in text


def test_runs_that_were_too_slow_for_tcp_come_with_what_to_do() -> None:
    report = (REPOSITORY / "core" / "emulator" / "src" / "report.rs").read_text()
    (beginning,) = re.findall(r'"(timers of TCP may have noticed)', report)
    late = row("acyclic", "pause", valid=False, problems=[f"{beginning} that ..."])
    assert too_late_for_tcp(late)
    assert not too_late_for_tcp(late | {"problems": ["late"]})
    assert not too_late_for_tcp(late | {"valid": True})
    text = findings(late, late | {"problems": []})
    assert "In 1 of them the machine was too busy for TCP even so" in text
    assert "a larger --slow-down" in text


def test_runs_that_were_measured_more_slowly_are_counted() -> None:
    usual = row("acyclic", "pause") | {"slow_down": 1.0}
    slower = usual | {"slow_down": SLOWER}
    text = findings(usual, slower, slower)
    assert "In 2 of 3 runs the machine was too busy for TCP" in text
    assert "measured again with --slow-down 8" in text
    assert "again" not in findings(slower, slower)  # as the user had asked


def test_programs_without_virtual_time_are_a_note_and_the_row_stays_valid() -> None:
    rows = [{"real_time_programs": each} for each in ([], None, ["h1: a (7)"], ["h2: b (8)"])]
    (note,) = without_virtual_time([{"valid": True}, *rows, *rows])
    assert note.startswith("Note: 2 programs on hosts had no virtual time")
    assert note.endswith(": h1: a (7), h2: b (8).")
    assert list(without_virtual_time(rows[:2])) == []


def test_a_program_counts_if_it_is_there_at_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([["starts", "stays"], ["stays", "late"]])
    monkeypatch.setattr(virtual_clock, "programs_in_real_time", lambda *_: next(looks))
    monkeypatch.setattr(real_time, "LOOK_EVERY_S", 3600.0)
    lab: Any = SimpleNamespace(virtual_clock=True, names=None, fabric=load("ring,3"))
    with real_time.programs_seen(lab) as seen:
        pass
    assert seen == ["stays"]
    lab.virtual_clock = False
    with real_time.programs_seen(lab) as seen:
        pass
    assert seen == []


def test_a_run_without_rows_can_be_shown() -> None:
    shown = present({"rows": [], "parameters": {"rate_mbps": 10.0}}, [], True)
    assert shown.columns.table(shown.rows) == []
    assert shown.plots == []


def test_a_row_is_valid_at_any_stretch_but_not_with_problems() -> None:
    status = {
        "valid": True,
        "problems": [],
        "stretch": 2.2,
        "slow_down": 1.0,
        "host_wait_us": 2000,
        "datapath": "kernel",
    }
    judged = with_validity({"mbps": 1.0}, status, [])
    assert (judged["valid"], judged["stretch"], judged["problems"]) == (True, 2.2, [])
    assert judged["datapath"] == "kernel"
    judged = with_validity({}, {**status, "valid": False, "problems": ["frames"]}, ["mine"])
    assert (judged["valid"], judged["problems"]) == (False, ["mine", "frames"])
