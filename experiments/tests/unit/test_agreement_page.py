"""The page that compares the emulator with the simulator."""

from __future__ import annotations

import numpy as np

from knotless.results import stored
from knotless.results.stored import Stored
from knotless_experiments.commands.reproduction import AGREEMENT, DEFAULT_PAGE
from knotless_experiments.studies.agreement import page, presentation, switches


def test_the_page_in_the_repository_matches_its_runs() -> None:
    there = DEFAULT_PAGE.with_name(AGREEMENT).read_text(encoding="utf-8")
    assert there == page.text(stored.read())


def test_the_stored_cases_are_those_that_are_promised() -> None:
    rows = stored.read().rows("agreement", "emulation")
    shown = {(row["fabric"], row["routes"], row["flow_control"]) for row in rows}
    for control in ("pause", "pfc"):
        assert {
            ("ring,4", "dor, low port", control),
            ("mesh,2,1,hosts=2", "dor", control),
            ("mesh,2,1,hosts=3", "dor", control),
            ("torus,4,4", "updown", control),
        } <= shown
    assert {
        ("ring,4", "dor, low port", "credits"),
        ("ring,4", "dor, 2 VCs, low port", "credits"),
        ("mesh,2,1,hosts=3", "dor", "credits"),
        ("torus,4,4", "dor", "credits"),
    } <= shown


def test_the_stored_runs_have_a_case_of_each_kind_of_switch_settings() -> None:
    rows = [row for row in stored.read().rows("agreement", "emulation") if row.get("settings")]
    assert {row["settings"] for row in rows} == {
        *(switches.ALPHA, switches.HEADROOM_POOL, switches.DWRR),
        *(switches.STRICT, switches.LOSSY, switches.MARKING, switches.PAUSE_FRAMES),
        *(switches.WATCHDOG, switches.LATE_WATCHDOG, switches.ALERT),
    }
    assert all(row["pools_apart"] == [] for row in rows)


def test_the_stored_runs_have_ecmp_by_levels_and_from_a_root() -> None:
    rows = stored.read().rows("agreement", "emulation")
    hashed = [row for row in rows if row["routes"].endswith(", ECMP")]
    assert {row["fabric"] for row in hashed} == {"fattree2,4", "hyperx,S=3x3,hosts=2"}
    for row in hashed:
        assert (row["agrees"], row["peaks_apart"], row["pauses_apart"]) == (True, [], 0)


def test_a_case_that_disagrees_is_counted_and_shown() -> None:
    results = stored.read()
    rows = results.rows("agreement", "emulation")
    agree = sum(row["agrees"] for row in rows)
    assert f"{agree} of {len(rows)} cases agree" in page.text(results)
    changed = [
        {**run, "rows": [{**row, "agrees": False} for row in run["rows"][:1]] + run["rows"][1:]}
        for run in results.runs
        if run["experiment"] == "agreement"
    ]
    text = page.text(Stored(changed))
    first = sum(
        run["rows"][0]["agrees"] for run in results.runs if run["experiment"] == "agreement"
    )
    assert f"{agree - first} of {len(rows)} cases agree" in text
    assert text.count("| NO |") == first


def test_rows_that_are_not_valid_are_left_out_and_counted() -> None:
    results = stored.read()
    runs = [
        {**run, "rows": [{**row, "valid": False} for row in run["rows"]]}
        for run in results.runs
        if run["experiment"] == "agreement"
    ]
    text = page.text(Stored(runs))
    left_out = len(results.rows("agreement", "emulation"))
    assert f"Skipped: {left_out} rows that are not valid" in text
    assert "| ring,4 |" not in text


def test_times_to_deadlock_are_drawn_for_cases_that_deadlocked_in_both() -> None:
    rows = stored.read().rows("agreement", "emulation")
    both = [row for row in rows if row["emulated_deadlock"] and row["simulated_deadlock"]]
    (plot,) = presentation.plots(rows, [])
    assert plot.name == "time-to-deadlock"
    dots = [line for line in plot.figure.axes[0].lines if line.get_marker() == "o"]
    drawn = [np.asarray(line.get_xdata()).item() for line in dots]
    keys = ("simulated_frozen_ms", "emulated_frozen_ms")
    assert drawn == [row[key] for row in both for key in keys]
    assert presentation.plots([row for row in rows if row not in both], []) == []
