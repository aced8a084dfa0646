"""Which cases are run, and what is refused before anything is built."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from experiments import experiment
from experiments.deadlock import EXPERIMENT
from experiments.deadlock.matrix import QUICK, Case, cases
from experiments.experiment import Common, ExperimentError
from knotless.main import main


def test_the_whole_matrix_has_every_sensible_case_once() -> None:
    found = cases(None, None, None, quick=False, repeats=1)
    assert len(found) == len(set(found)) == 2 * 5 * 2 + 1 * 1 * 2
    assert Case("dateline", "pfc", "tcp") in found
    assert not [case for case in found if case.routes == "dateline" and case.flow_control != "pfc"]


def test_cases_come_by_routes_so_that_a_fabric_serves_many() -> None:
    routes = [case.routes for case in cases(None, None, None, quick=False, repeats=2)]
    assert routes == sorted(routes, key=["cyclic", "acyclic", "dateline"].index)


def test_quick_is_its_list_and_repeats_multiply() -> None:
    assert set(cases(None, None, None, quick=True, repeats=1)) == set(QUICK)
    ten = cases("cyclic", "all", "udp", quick=False, repeats=10)
    assert [case.repeat for case in ten] == list(range(1, 11))


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"routes": "cyclic,round"}, "--routes: 'round'"),
        ({"flow_control": "some"}, "--flow-control: 'some'"),
        ({"protocol": ""}, "--protocol: ''"),
        ({"routes": "dateline", "flow_control": "all"}, "need --flow-control pfc"),
    ],
)
def test_senseless_choices_are_refused(choice: dict[str, str], says: str) -> None:
    with pytest.raises(ExperimentError, match=says):
        EXPERIMENT.prepare(Common(), choice)


@pytest.mark.parametrize(
    "common",
    [
        Common(duration_s=0.0),
        Common(duration_s=float("nan")),
        Common(rate_mbps=-1.0),
        Common(rate_mbps=1e9),
    ],
)
def test_absurd_durations_and_rates_are_refused(common: Common) -> None:
    with pytest.raises(ExperimentError, match="is not within"):
        EXPERIMENT.prepare(common, {})


def test_parameters_are_plain_values() -> None:
    campaign = EXPERIMENT.prepare(Common(quick=True), {})
    assert json.loads(json.dumps(campaign.parameters))["cases"][0][0] == "cyclic"
    assert campaign.steps == len(QUICK) + 3


@pytest.mark.parametrize(
    "args",
    [
        ["deadlock", "--routes", "round"],
        ["deadlock", "--repeats", "0"],
        ["deadlock", "--repeats", "x"],
        ["deadlock", "--duration", "-1"],
        ["deadlock", "--no-such-option"],
        ["deadlok"],
    ],
)
def test_a_mistake_is_one_line_and_exit_2(args: list[str], tmp_path: Any) -> None:
    out = tmp_path / "results"
    asked = ["run", *args] + (["--out", str(out)] if args[0] == "deadlock" else [])
    result = CliRunner(mix_stderr=False).invoke(main, asked)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("knotless: ")
    assert result.stderr.count("\n") == 1
    assert not out.exists()


def test_help_lists_the_experiments() -> None:
    result = CliRunner().invoke(main, ["run", "--help"])
    assert result.exit_code == 0
    assert all(name in result.output for name in experiment.names())
    assert "deadlock" in experiment.names()
    own = CliRunner().invoke(main, ["run", "deadlock", "--help"]).output
    assert "Example:" in own
    assert all(option in own for option in ("--quick", "--flow-control", "--json", "--seed"))
