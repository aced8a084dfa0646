"""The page of the settings that were chosen."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from knotless.results.stored import FOLDER, read
from knotless_experiments.reproduction import sensitivity

KNOWN = read(FOLDER / sensitivity.RUNS).runs


def of_group(group: sensitivity.Group) -> list[dict[str, Any]]:
    return [
        dict(run)
        for run in KNOWN
        if run["experiment"] == group.experiment
        and run["rows"][0]["fabric"].startswith(group.fabric)
    ]


def test_every_chosen_setting_is_varied_by_a_fifth_in_both_directions() -> None:
    varied: dict[str, list[float]] = {}
    for group in sensitivity.GROUPS:
        base, others = sensitivity.ordered(of_group(group))
        chosen = sensitivity.settings_of(base)
        for name, run in others:
            settings = sensitivity.settings_of(run)
            assert {key for key in chosen if settings[key] != chosen[key]} == {name}
            varied.setdefault(name, []).append(settings[name] / chosen[name])
    assert set(varied) == set(sensitivity.SETTINGS)
    for factors in varied.values():
        assert sorted({round(factor, 3) for factor in factors}) == [0.8, 1.2]


def test_all_runs_are_in_one_table_each() -> None:
    text = list(sensitivity.lines(KNOWN))
    tables = [line for line in text if line.startswith("| ") and not line.startswith("| |")]
    assert len(tables) == len(KNOWN) + len(sensitivity.GROUPS)
    assert sum("*fitted*" in line for line in tables) == len(sensitivity.GROUPS)


def test_a_figure_is_that_of_its_run() -> None:
    group = sensitivity.GROUPS[0]
    runs = copy.deepcopy(of_group(group))
    base, _ = sensitivity.ordered(runs)
    for row in base["rows"]:
        row["mean_us"] = {"dl": 1.0, "updown": 4.0}[row["engine"]]
    others = [run for run in KNOWN if run["rows"][0]["fabric"] != runs[0]["rows"][0]["fabric"]]
    text = "\n".join(sensitivity.lines([*runs, *others]))
    assert "| *fitted* | 0.250 | 0.250 |" in text


def test_runs_that_differ_in_two_settings_are_refused() -> None:
    runs = copy.deepcopy(of_group(sensitivity.GROUPS[0]))
    _, others = sensitivity.ordered(runs)
    others[0][1]["parameters"]["costs"]["receive_us"] = 7.0
    others[0][1]["parameters"]["costs"]["gap_us"] = 7.0
    with pytest.raises(ValueError, match="too many values"):
        sensitivity.ordered(runs)
