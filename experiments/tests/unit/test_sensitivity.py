"""The page of the settings that were chosen."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from knotless.results.stored import FOLDER, read
from knotless_experiments.reproduction import sensitivity
from knotless_experiments.reproduction.rows import is_random

KNOWN = read(FOLDER / sensitivity.RUNS).runs


def of_group(group: sensitivity.Group) -> list[dict[str, Any]]:
    return [
        dict(run)
        for run in KNOWN
        if run["experiment"] == group.experiment
        and run["rows"][0]["fabric"].startswith(group.fabric)
    ]


def test_every_chosen_setting_has_the_same_other_values() -> None:
    for group in sensitivity.GROUPS:
        base, others = sensitivity.ordered(of_group(group))
        chosen = sensitivity.settings_of(base[0])
        varied: dict[str, list[float]] = {}
        for names, runs in others:
            settings = sensitivity.settings_of(runs[0])
            assert [key for key in chosen if settings[key] != chosen[key]] == names
            if len(names) == 1:
                varied.setdefault(names[0], []).append(settings[names[0]] / chosen[names[0]])
        assert varied
        for factors in varied.values():
            assert [round(factor, 3) for factor in factors] == [0, 0.8, 1.2, 1.3]


def test_all_settings_are_in_one_table_each() -> None:
    text = list(sensitivity.lines(KNOWN))
    tables = [line for line in text if line.startswith("| ") and not line.startswith("| |")]
    different = {
        (run["experiment"], run["rows"][0]["fabric"], *sensitivity.settings_of(run).items())
        for run in KNOWN
    }
    assert len(tables) == len(different) + len(sensitivity.GROUPS)
    assert sum("*fitted*" in line for line in tables) == len(sensitivity.GROUPS)


def test_figures_in_which_something_is_random_have_ten_repeats() -> None:
    for group in sensitivity.GROUPS:
        base, others = sensitivity.ordered(of_group(group))
        for runs in (base, *(runs for _, runs in others)):
            rows = [{"experiment": group.experiment, **row} for run in runs for row in run["rows"]]
            for result in group.results:
                repeats = [figure for run in runs for figure in result.compute(run["rows"])]
                assert len(repeats) == (10 if any(map(is_random, rows)) else 1)


def test_a_figure_is_that_of_its_run() -> None:
    group = sensitivity.GROUPS[0]
    runs = copy.deepcopy(of_group(group))
    base, _ = sensitivity.ordered(runs)
    for row in base[0]["rows"]:
        row["list_means_us"] = [{"dl": 1.0, "updown": 4.0}[row["engine"]]] * 100
    others = [run for run in KNOWN if run["rows"][0]["fabric"] != runs[0]["rows"][0]["fabric"]]
    text = "\n".join(sensitivity.lines([*runs, *others]))
    assert f"| *fitted* |{' 0.250 (0.250 to 0.250; 10) |' * 2}" in text


def test_runs_that_differ_in_two_settings_are_refused() -> None:
    runs = copy.deepcopy(of_group(sensitivity.GROUPS[0]))
    _, others = sensitivity.ordered(runs)
    costs = others[0][1][0]["parameters"]["costs"]
    costs |= {"receive_us": 7.0, "gap_us": 7.0}
    with pytest.raises(ValueError, match="differs in several settings"):
        sensitivity.ordered(runs)
