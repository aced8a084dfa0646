"""The findings in the report of a run: it must state when results are not as expected."""

from __future__ import annotations

from knotless.experiments.framework.routed import with_validity
from knotless.experiments.studies.deadlock.columns import COLUMNS
from knotless.experiments.studies.deadlock.show import present, sentences
from tests.support.deadlock_rows import KNOT, row


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
