"""Results of emulator and simulator that the agreement experiment treats as equal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.routing.request import PlanRequest
from knotless.simulation import Result, simulate
from knotless_experiments.framework.experiment import Common
from knotless_experiments.framework.routed import Routed, with_validity
from knotless_experiments.studies.agreement import EXPERIMENT, measure, presentation
from knotless_experiments.studies.agreement.cases import Case, cases
from knotless_experiments.studies.agreement.columns import COLUMNS
from knotless_experiments.studies.agreement.measure import (
    Emulated,
    Seen,
    compared,
    samples,
    simulated,
)

DOR = PlanRequest(engine="dor")
ONE_WAY = PlanRequest(engine="dor", vcs=1, select="low-port")
RING = Case("knot", Routed("ring,4,rate=10,delay=1000", ONE_WAY), "shift:2", FlowControl.PAUSE)
SHARED = Case(
    "share-2", Routed("mesh,2,1,hosts=2,rate=10,delay=1000", DOR), "shift:2", FlowControl.PFC
)
KNOT = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
WINDOW_US = 2e6
IN_TIME = {
    "valid": True,
    "problems": [],
    "stretch": 1.0,
    "slow_down": 1.0,
    "host_wait_us": 2000,
    "datapath": "user",
}


def result(case: Case) -> Result:
    return simulate(case.scenario.lasting(WINDOW_US))


def row(case: Case, **changed: Any) -> dict[str, Any]:
    """Return the row of an emulator whose results equal the simulator's, except for the changes."""
    virtual = result(case)
    seen = replace(simulated(virtual), **changed)
    live = Emulated(seen, WINDOW_US, 100.0, IN_TIME, [])
    return with_validity(compared(case, live, virtual), IN_TIME, [])


@pytest.mark.parametrize("case", [RING, SHARED])
def test_equal_results_agree(case: Case) -> None:
    line = row(case)
    assert (line["agrees"], line["ratio"], line["apart_frames"]) == (True, 1.0, 0)
    assert line["peaks_apart"] == []
    assert line["simulated_deadlock"] == (case is RING)
    assert line["emulated_knot"] == (
        ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"] if case is RING else []
    )
    assert 0 < line["emulated_pauses"] == line["simulated_pauses"]


def test_a_frame_at_the_edge_of_the_window_is_no_difference() -> None:
    frames = simulated(result(SHARED)).flows_frames
    one_less = row(SHARED, flows_frames=[frames[0] - 1, *frames[1:]])
    assert (one_less["agrees"], one_less["apart_frames"]) == (True, 1)


def test_a_flow_that_is_off_by_more_than_a_hundredth_does_not_agree() -> None:
    frames = simulated(result(SHARED)).flows_frames
    off = max(3, frames[0] // 50)
    other = row(SHARED, flows_frames=[frames[0] - off, frames[1] + off, *frames[2:]])
    # All together are the same: each flow counts.
    assert (other["agrees"], other["ratio"], other["apart_frames"]) == (False, 1.0, off)


def test_another_verdict_or_knot_does_not_agree() -> None:
    assert not row(RING, knot=[])["agrees"]
    assert not row(RING, knot=["s1:2/0", "s2:2/0"])["agrees"]
    assert not row(SHARED, knot=["s1:2/0"])["agrees"]


def test_other_losses_or_marks_do_not_agree() -> None:
    seen = simulated(result(SHARED))
    assert row(SHARED, lost_frames=seen.lost_frames + 2)["agrees"]
    assert not row(SHARED, lost_frames=seen.lost_frames + 3)["agrees"]
    other = row(SHARED, inside=replace(seen.inside, marked=20))
    assert (other["emulated_marked"], other["simulated_marked"], other["agrees"]) == (20, 0, False)


def test_other_storms_do_not_agree() -> None:
    (case,) = (case for case in cases(Common(), "switches") if case.settings == "late watchdog")
    seen = simulated(result(case))
    assert seen.knot == KNOT
    (name, counts), *_ = seen.inside.storms.items()
    line = row(case)
    assert (line["agrees"], line["storms_apart"]) == (True, [])
    assert line["emulated_storms"] == line["simulated_storms"] == seen.inside.storms_detected > 0
    (*_, watched) = presentation.sentences([line])
    assert watched.startswith("In 1 cases watchdogs have detected storms: ")
    assert "In 1 of them" in watched
    # One frame more is within two frames, but watchdogs must drop the same.
    other = {**seen.inside.storms, name: (*counts[:-1], counts[-1] + 1)}
    line = row(case, inside=replace(seen.inside, storms=other))
    assert (line["agrees"], line["storms_apart"]) == (False, [name])
    missing = {key: found for key, found in seen.inside.storms.items() if key != name}
    assert row(case, inside=replace(seen.inside, storms=missing))["storms_apart"] == [name]


def test_a_peak_that_differs_is_named() -> None:
    seen = simulated(result(SHARED))
    channels = {name: dict(one) for name, one in seen.channels.items()}
    channels["h1"]["account_peak_bytes"] += 1522
    channels["h2"]["pauses"] += 3
    line = row(SHARED, channels=channels)
    assert (line["peaks_apart"], line["pauses_apart"]) == (["h1 +1522"], 3)
    assert line["emulated_pauses"] - line["simulated_pauses"] == 3


def test_pauses_of_a_link_count_once() -> None:
    one = {"pauses": 4, "paused_us": 10, "account_peak_bytes": 0, "queue_peak_bytes": 0}
    channel = {
        "tx_frames": 1,
        "rx_frames": 1,
        "priorities": [{**one, "priority": p} for p in range(8)],
    }
    assert measure._counted(channel, FlowControl.PAUSE)["pauses"] == 4
    assert measure._counted(channel, FlowControl.PFC)["pauses"] == 32


def test_samples_are_of_the_columns_that_are_promised() -> None:
    seen = simulated(result(SHARED))
    lines = samples(SHARED, seen, seen)
    assert all(set(line) | {"row"} == set(EXPERIMENT.columns.sample_types) for line in lines)
    kinds = {line["channel"]: line["kind"] for line in lines}
    assert (kinds["h1"], kinds["s1:1"], kinds["s1:3"]) == ("host", "delivery", "inner")


def test_every_case_has_a_description_of_its_own() -> None:
    runs = cases(Common(), None)
    assert len({case.key for case in runs}) == len(runs)
    assert {case.flow_control for case in runs} == {"pause", "pfc", "credits"}
    assert {case.group for case in runs if case.settings} == {"switches"}
    by_credits = [case for case in runs if case.flow_control == "credits"]
    assert by_credits == cases(Common(), "credits")
    assert all(case.flows for case in runs)
    with pytest.raises(KnotlessError, match="--case: 'ring' is none of"):
        cases(Common(), "ring")
    with pytest.raises(KnotlessError, match="no case is left"):
        cases(Common(quick=True), "share-2")


def test_presentations_fit_their_columns() -> None:
    rows = [row(RING), row(SHARED)]
    assert all(len(line) == len(COLUMNS.headings) for line in COLUMNS.table(rows))
    (agreed, frozen, same) = presentation.sentences(rows)
    assert agreed.startswith("2 of 2 cases agree")
    assert "1 of them deadlocked in the emulator" in frozen
    assert "to the byte" in same
    (marking,) = (case for case in cases(Common(), "switches") if case.settings == "marking")
    *_, inside = presentation.sentences([row(marking)])
    assert inside.startswith("In 1 cases switches have settings: the peaks of 2 of 2 pools")


def test_seen_is_all_of_a_run() -> None:
    # What the simulator sees of a run has every flow and every channel of the fabric.
    seen: Seen = simulated(result(RING))
    assert len(seen.flows_frames) == len(RING.flows) == 4
    assert set(seen.channels) == {"h1", "h2", "h3", "h4"} | {
        f"s{switch}:{port}" for switch in range(1, 5) for port in range(1, 4)
    }
