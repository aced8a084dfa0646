"""`knotless advise` and `knotless plan --explain`: the choice, and what is said about it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from click.testing import CliRunner, Result

from knotless.cli.main import main
from knotless.routing.engine import engines
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.verification.advice import Advice, advise
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.comparison import ALL, Compared, compare
from knotless.verification.explanation import explain
from tests.support.rule_engines import RULE_ENGINES


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(arguments), prog_name="knotless")


def advice(spec: str, names: str = ALL, **options: object) -> Advice:
    fabric = load(spec)
    return advise(fabric, list(compare(fabric, names, PlanRequest.from_options(**options))))


@pytest.mark.parametrize("spec", ["torus,4,4", "irregular-b", "fattree,2,4,2", "random,12,hosts=1"])
@pytest.mark.parametrize("control", ["auto", "pause"])
def test_no_safe_plan_has_a_lower_load_than_the_one_advised(spec: str, control: str) -> None:
    answer = advice(spec, flow_control=control)
    safe = {
        row.engine: row.summary
        for row in answer.rows
        if row.summary and row.summary["safe"] and row.engine in RULE_ENGINES
    }
    assert answer.engine in safe
    loads = {name: float(str(summary["max_channel_load"])) for name, summary in safe.items()}
    assert loads[answer.engine or ""] == min(loads.values())
    assert set(answer.reasons) == set(engines())
    assert [name for name, text in answer.reasons.items() if text == "advised"] == [answer.engine]


def test_virtual_channels_do_not_help_under_pause() -> None:
    answer = advice("irregular-b", flow_control="pause", vcs=4)
    assert answer.reasons["dfsssp"] == "can deadlock under PAUSE"
    assert advice("irregular-b", vcs=4).engine in {"dl", "dfsssp", "lash"}


def test_fewer_virtual_channels_are_offered_with_their_load() -> None:
    answer = advice("irregular-b", vcs=4)
    assert len(answer.cheaper) == 1
    assert "turn needs only 1 (pause)" in answer.cheaper[0]


def figures(load_: int, rules: int = 1, *, safe: bool = True) -> dict[str, object]:
    usual = {"mean_switches": 2.0, "vcs": 1, "vlans": 1, "load_bound": 1.0}
    control = {"flow_control": "pause", "safe": safe}
    return {**usual, **control, "max_channel_load": load_, "rules": rules}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([Compared("updown", figures(3)), Compared("lash", figures(2))], "lash"),
        ([Compared("updown", figures(2, 5)), Compared("lash", figures(2, 6))], "updown"),
        ([Compared("dfsssp", figures(2)), Compared("dor", figures(2))], "dor"),
        ([Compared("minimal", figures(1, safe=False)), Compared("dl", figures(9))], "dl"),
        ([Compared("minimal", figures(1, safe=False)), Compared("dor", None, "no")], None),
    ],
)
def test_ranking(rows: Sequence[Compared], expected: str | None) -> None:
    assert advise(load("mesh,2,2"), rows).engine == expected


def test_advise_prints_json_and_exits_with_1_without_a_safe_plan() -> None:
    done = run("advise", "ring,4", "--engine", "dor,updown", "--json")
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["fabric"], answer["engine"]) == (0, "ring,4", "dor")
    assert {row["engine"]: row["verdict"] for row in answer["engines"]}["dor"] == "advised"
    done = run("advise", "ring,5", "--engine", "minimal,lsft", "--select", "low-port")
    assert done.exit_code == 1
    assert "no engine has a plan that cannot deadlock" in done.stdout


@pytest.mark.parametrize("name", sorted(engines()))
def test_every_engine_says_what_it_does_and_why(name: str) -> None:
    engine = engines()[name]
    for text in (engine.rule, engine.proof, engine.use):
        assert text.endswith(".")


def test_the_explanation_agrees_with_the_plan() -> None:
    request = PlanRequest.from_options()
    checked = CheckedPlan(make_plan(load("torus,5,5"), request))
    topics = explain(checked, request)
    assert topics["engine"].startswith("dor, the default of the family torus")
    assert topics["virtual channels"].startswith("2 in use (as many as the engine needs); PFC")
    assert "They form no cycle" in topics["proof"]
    assert "cannot deadlock under PFC" in topics["proof"]


def test_the_explanation_names_the_packets_of_a_cycle() -> None:
    done = run("plan", "ring,4", "--engine=dor", "--vcs=1", "--select=low-port", "--explain")
    assert "h1 to h3 holds s1:2/0 while it waits for s2:2/0" in done.stdout
    done = run("plan", "torus,5,5", "--flow-control", "pause", "--explain", "--json")
    explanation = json.loads(done.stdout)["explanation"]
    assert "PAUSE stops all priorities" in explanation["virtual channels"]
    assert run("plan", "ring,4", "--compare", "--explain").exit_code == 2


def test_paths_that_are_not_shortest_are_said_to_be_longer() -> None:
    request = PlanRequest.from_options(engine="prefix", flow_control="none")
    checked = CheckedPlan(make_plan(load("torus,4,4"), request))
    topics = explain(checked, request)
    assert topics["paths"].startswith("Not all are shortest")
    assert checked.hops_over_shortest > 1
    assert "no channel that waits for another" in topics["proof"]
