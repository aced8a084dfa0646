"""The paths experiment: figures of plans, and their report."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from experiments.tests.support.experiment_rows import rows_of
from knotless.cli.main import main
from knotless_experiments.framework.experiment import ANALYSIS, Common
from knotless_experiments.studies.paths import EXPERIMENT

HERE = Common(on=ANALYSIS)


def test_the_small_set_is_the_papers_seven_topologies() -> None:
    rows = rows_of(EXPERIMENT, Common(on=ANALYSIS, quick=True))
    assert [row["hosts"] for row in rows] == [16] * 7
    # Table 1 of Otsuka et al. has these of the square grids; test_table_1.py has all of it.
    mesh = rows[4]
    measured = (
        mesh["vlans"],
        mesh["mean_switches"],
        mesh["max_switches"],
        mesh["max_channel_load"],
    )
    assert measured == (4, 3.5, 7, 16)
    assert [row["fabric"] for row in rows if not row["acyclic"]] == [
        "torus,2,4,hosts=2",
        "torus,4,4",
    ]
    assert all(row["undelivered"] == 0 and row["valid"] for row in rows)


def test_engines_differ_in_channels_and_paths() -> None:
    rows = rows_of(EXPERIMENT, HERE, fabric=("irregular-a",), engine="updown,prefix,sbp,dl:2")
    by_engine = {row["engine"]: row for row in rows}
    assert by_engine["sbp"]["vcs"] == 6
    assert [name for name, row in by_engine.items() if row["minimal"]] == ["sbp", "dl"]
    assert by_engine["prefix"]["mean_switches"] > by_engine["updown"]["mean_switches"]
    assert all(row["acyclic"] for row in rows)


def test_options_choose_and_repeats_are_the_same() -> None:
    common = Common(on=ANALYSIS, repeats=2)
    rows = rows_of(EXPERIMENT, common, fabric=("mesh,4,4",), engine="dor", vlans="tree,default")
    assert [(row["vlan_assignment"], row["vlans"]) for row in rows] == [
        *([("default", 1)] * 2),
        *([("tree", 4)] * 2),
    ]
    assert {**rows[0], "repeat": 2} == rows[1]


def test_a_run_is_shown_with_its_findings() -> None:
    rows = rows_of(EXPERIMENT, Common(on=ANALYSIS, quick=True))
    shown = EXPERIMENT.present({"rows": rows, "parameters": {"on": ANALYSIS}}, [], True)
    assert shown.sentences[0] == "Every pair of hosts is reached."
    assert "torus,4,4, dor, low port: channel dependencies have a CYCLE" in shown.sentences[2]
    assert len(shown.plots) == 1
    worse = [{**rows[0], "undelivered": 3}]
    again = EXPERIMENT.present({"rows": worse, "parameters": {"on": ANALYSIS}}, [], False)
    assert "NOT reached: 3 pairs of hosts" in again.sentences[0]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--engine", "none"], "none"),
        (["--fabric", "torus,0"], "torus"),
        (["--vlans", "trees"], "--vlans"),
        (["--select", "best"], "--select"),
        (["--on", "simulation"], "paths runs on analysis"),
    ],
)
def test_problems_are_reported_in_one_line(args: list[str], message: str) -> None:
    result = CliRunner(mix_stderr=False).invoke(main, ["run", "paths", *args])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
