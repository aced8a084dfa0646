"""Cases that are run, and options that are refused before anything is built."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from experiments.tests.support.experiment_rows import rows_of
from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FLOW_CONTROLS, FlowControl
from knotless.cli.main import main
from knotless_experiments.framework import experiment
from knotless_experiments.framework.experiment import SIMULATION, Common, ExperimentError
from knotless_experiments.studies.deadlock import EXPERIMENT
from knotless_experiments.studies.deadlock.figures import SHORT
from knotless_experiments.studies.deadlock.matrix import QUICK, Case, cases

ONCE = Common()


def cases_of(common: Common = ONCE, **options: str) -> list[Case]:
    return cases(common, options)


def test_the_whole_matrix_has_every_sensible_case_once() -> None:
    every = cases_of()
    assert len(every) == len(set(every)) == 2 * 5 * 2 + 1 * 1 * 2
    assert Case("dateline", FlowControl.PFC, "tcp") in every
    assert not [case for case in every if case.routes == "dateline" and case.flow_control != "pfc"]


def test_cases_come_by_routes_so_that_a_fabric_serves_many() -> None:
    routes = [case.routes for case in cases_of(Common(repeats=2))]
    assert routes == sorted(routes, key=["cyclic", "acyclic", "dateline"].index)


def test_letters_are_a_patterns_cyclic_and_acyclic_routes() -> None:
    letters = cases_of(pattern="a,d,e", protocol="udp", flow_control="pause")
    assert [(case.pattern, case.routes) for case in letters] == [
        ("ring-4", "cyclic"),
        ("ring-6", "acyclic"),
        ("mesh-3x3", "cyclic"),
    ]
    named = cases_of(
        pattern="mesh-3x3", tagging="host,switch", protocol="udp", flow_control="pause"
    )
    assert [(case.routes, case.tagging) for case in named] == [
        (routes, tagging) for tagging in ("switch", "host") for routes in ("cyclic", "acyclic")
    ]


def test_the_simulator_has_no_tcp() -> None:
    with pytest.raises(KnotlessError, match="--protocol: 'tcp' is none of udp"):
        cases_of(Common(on=SIMULATION), protocol="tcp")
    assert {case.protocol for case in cases_of(Common(on=SIMULATION))} == {"udp"}


def test_the_simulator_deadlocks_where_predicted() -> None:
    options = {"pattern": "a,b,c,d,e,f", "flow_control": "none,pause"}
    rows = rows_of(EXPERIMENT, Common(on=SIMULATION, duration_s=1.0), **options)
    assert len(rows) == 12
    for row in rows:
        frozen = row["routes"] == "cyclic" and row["flow_control"] == "pause"
        assert row["deadlock"] == frozen
        assert row["cycle"] == (row["predicted_cycle"] if frozen else [])
        assert (row["lost_frames"] > 0) == (row["flow_control"] == "none")
        assert bool(row["predicted_cycle"]) == frozen


def test_plots_name_every_flow_control() -> None:
    assert set(SHORT) == set(FLOW_CONTROLS)


def test_credits_are_measured_on_request_with_the_same_deadlocks() -> None:
    assert not [case for case in cases_of() if case.flow_control == "credits"]
    rows = rows_of(EXPERIMENT, Common(on=SIMULATION, duration_s=1.0), flow_control="credits")
    assert [(row["routes"], row["deadlock"], row["lost_frames"]) for row in rows] == [
        ("cyclic", True, 0),
        ("acyclic", False, 0),
        ("dateline", False, 0),
    ]
    assert rows[0]["cycle"] == rows[0]["predicted_cycle"] != []


def test_auto_is_the_flow_control_that_the_routes_need() -> None:
    resolved = cases_of(flow_control="auto", protocol="udp")
    assert {(case.routes, case.flow_control) for case in resolved} == {
        *(("cyclic", "pause"), ("acyclic", "pause"), ("dateline", "pfc"))
    }


def test_quick_is_its_list_and_repeats_multiply() -> None:
    assert set(cases_of(Common(quick=True))) == set(QUICK)
    one = {"routes": "cyclic", "flow_control": "pause", "protocol": "udp"}
    ten = cases_of(Common(repeats=10), **one)
    assert [case.repeat for case in ten] == list(range(1, 11))


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"routes": "cyclic,round"}, "--routes: 'round'"),
        ({"flow_control": "some"}, "--flow-control: 'some'"),
        ({"protocol": ""}, "--protocol: ''"),
        ({"pattern": "a,g"}, "--pattern: 'g'"),
        ({"tagging": "nobody"}, "--tagging: 'nobody'"),
        ({"pattern": "a", "routes": "acyclic"}, "no case is left"),
        ({"routes": "dateline", "flow_control": "pause"}, "need --flow-control pfc"),
    ],
)
def test_senseless_choices_are_refused(choice: dict[str, str], says: str) -> None:
    with pytest.raises(KnotlessError, match=says):
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
    for name in experiment.names():
        assert experiment.load(name).summary in " ".join(result.output.split())
    own = CliRunner().invoke(main, ["run", "deadlock", "--help"]).output
    assert "Example:" in own
    assert all(option in own for option in ("--quick", "--flow-control", "--json", "--seed"))
