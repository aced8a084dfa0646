"""The functions for notebooks: they give what the commands print, and display themselves."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import knotless as kn
from knotless.base.errors import KnotlessError, PlanError
from knotless.cli.main import main
from knotless.simulation import Load

untyped: Any = kn
"""For calls that types would not allow."""
RISKY = {"engine": "dor", "vcs": 1, "select": "low-port"}


def printed(*arguments: str) -> dict[str, object]:
    done = CliRunner(mix_stderr=False).invoke(main, [*arguments, "--json"], prog_name="knotless")
    output: dict[str, object] = json.loads(done.stdout)
    return output


def test_figures_are_those_that_the_commands_print(tmp_path: Path) -> None:
    options = ("--engine=dor", "--vcs=1", "--select=low-port")
    plan = kn.plan("ring,4", **RISKY)
    assert dict(plan.figures).items() <= printed("plan", "ring,4", *options).items()
    kn.compile(plan).write(tmp_path / "rules")
    assert dict(kn.check(plan)).items() <= printed("check", str(tmp_path / "rules")).items()
    analysed = printed("analyse", "ring,4", *options, "--pattern=shift:2")
    assert dict(kn.analyse(plan, "shift:2")).items() <= analysed.items()
    simulated = printed("simulate", "ring,4", *options, "--pattern=shift:2")
    assert dict(kn.simulate(plan, "shift:2")).items() <= simulated.items()
    advised = printed("advise", "ring,4")
    assert kn.advise("ring,4").source.engine == advised["engine"]


def test_results_display_themselves() -> None:
    plan = kn.plan("ring,4", **RISKY)
    assert plan.cycle == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert not plan.acyclic
    assert plan.path("h1", "h2")[0].switch == "s1"
    assert "<td>no</td>" in plan._repr_html_()
    assert "CAN DEADLOCK under PAUSE" in repr(plan)
    assert "rules" in kn.compile(plan)._repr_html_()
    table = kn.advise("ring,4", "dor,updown")
    assert table._repr_html_().count("<tr>") == 3
    assert repr(table).splitlines()[2].startswith("dor ")
    result = kn.simulate(plan, "shift:2")
    assert result.text == "DEADLOCK: s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0"


def test_html_is_escaped() -> None:
    from knotless.shown import Figures

    assert "<b>&lt;x&gt;</b>" in Figures("<x>", {"a": [1, 2]})._repr_html_()


def test_drawings_show_the_cycle_in_red(tmp_path: Path) -> None:
    safe, risky = kn.draw("ring,4"), kn.draw(kn.plan("ring,4", **RISKY))
    assert "#c8102e" not in safe.svg
    assert "#c8102e" in risky.svg
    assert kn.draw("ring,4") == safe
    risky.save(tmp_path / "cycle.svg")
    assert ElementTree.parse(tmp_path / "cycle.svg").getroot().tag.endswith("svg")  # noqa: S314


def test_a_simulation_without_an_end_gets_one() -> None:
    result = kn.simulate("ring,3", "shift:1", rate_mbps=1000, delay_us=1)
    assert result["simulated_us"] > 0
    loaded = kn.simulate("ring,3", "shift:1", traffic=Load("poisson", 0.1), duration_us=1e5)
    assert loaded["simulated_us"] == 1e5


def test_mistakes_are_refused() -> None:
    plan = kn.plan("ring,3")
    with pytest.raises(PlanError, match="engin"):
        kn.plan("ring,3", engin="dor")
    with pytest.raises(PlanError, match="rate_mbps, delay_us"):
        kn.simulate(plan, "shift:1", rate_mbps=10)
    with pytest.raises(KnotlessError, match="nothing"):
        kn.analyse(plan, "nothing")
    with pytest.raises(KnotlessError, match="at least 3"):
        kn.load("ring,2")
    with pytest.raises(PlanError, match="engine: a plan has its options already"):
        kn.check(plan, engine="dor")
    with pytest.raises(AttributeError):
        _ = kn.nothing


def test_the_package_imports_nothing_until_it_is_used() -> None:
    code = "import sys, knotless; print('numpy' in sys.modules, 'simulation' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    assert set(kn.__all__) <= set(dir(kn))


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: untyped.simulate("ring,4", seed=1.5), "seed: 1.5 is no whole number"),
        (
            lambda: untyped.simulate("ring,4", duration_us="fast"),
            "duration_us: 'fast' is no time: write it as 10ms, or as a number of us",
        ),
        (
            lambda: untyped.simulate("ring,4", rate_mbps=[10]),
            r"rate_mbps: \[10\] is no rate in Mbit/s",
        ),
        (
            lambda: untyped.simulate("ring,4", duration_us=float("nan")),
            "duration_us: 'nan' is no time",
        ),
        (
            lambda: untyped.simulate("ring,4", duration_s=1),
            r"simulate\(\) has no argument 'duration_s';",
        ),
        (lambda: untyped.simulate("ring,4", rate="10G"), "'rate'; did you mean 'rate_mbps'?"),
        (lambda: untyped.simulate("ring,4", 7), "pattern: 7 is no name, such as 'shift:2'"),
        (
            lambda: untyped.plan("ring,4", vc=1),
            r"plan\(\) has no argument 'vc'; did you mean 'vcs'?",
        ),
        (
            lambda: untyped.plan(64),
            "fabric: 64 is no fabric, nor its file or spec, such as 'torus,4,4'",
        ),
        (lambda: untyped.plan(None), "fabric: None is no fabric"),
        (lambda: untyped.load(64), "spec: 64 is no fabric"),
        (
            lambda: untyped.plan(),
            r"plan\(\) takes \(fabric: .*: missing a required argument: 'fabric'",
        ),
        (
            lambda: untyped.draw("ring,4", "x.svg"),
            r"marked: channels .*: draw\(..\).save\('x.svg'\)",
        ),
        (
            lambda: untyped.plan("torus,4,4", engine="dorr"),
            "engine 'dorr'; did you mean 'dor'?",
        ),
        (lambda: untyped.plan("tours,4,4"), "there is no family 'tours'; did you mean 'torus'?"),
        (
            lambda: untyped.simulate("ring,4", "shfit:2"),
            "pattern 'shfit'; did you mean 'shift'?",
        ),
        (
            lambda: untyped.simulate(untyped.plan("ring,4"), "shift:2", rate_mbps=100),
            "rate_mbps, delay_us: the links of a plan have theirs; give a fabric",
        ),
        (lambda: untyped.from_networkx(None), "graph: None is no graph of NetworkX, such as"),
        (lambda: untyped.load("nofile.json"), "nofile.json: cannot be read: No such file"),
        (
            lambda: untyped.running("not-there"),
            "no fabric 'not-there' is running; ",
        ),
        (
            lambda: untyped.fabric("ring,4", engin="dor"),
            "option 'engin'; did you mean 'engine'?",
        ),
        (
            lambda: untyped.frame(untyped.analyse("ring,4")),
            "source: Figures is neither a fabric, running or",
        ),
    ],
)
def test_mistakes_in_calls_say_what_is_right(call: Callable[[], object], complaint: str) -> None:
    with pytest.raises(kn.KnotlessError, match=complaint) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_arguments_may_have_units() -> None:
    bare = untyped.simulate("ring,4", "shift:2", rate_mbps=100, duration_us=2000)
    units = untyped.simulate("ring,4", "shift:2", rate_mbps="0.1G", duration_us="2ms")
    assert units["result_sha256"] == bare["result_sha256"]


def test_figures_are_attributes() -> None:
    verdict = kn.check("ring,4", engine="updown")
    assert isinstance(verdict, kn.Verdict)
    assert (verdict.safe, verdict.acyclic, verdict.cycle) == (True, True, [])
    assert verdict.undelivered == verdict["undelivered"] == 0
    assert copy.deepcopy(verdict) == verdict
    with pytest.raises(AttributeError, match="no figure 'undeliverd'; did you mean 'undelivered'"):
        _ = verdict.undeliverd


def test_names_of_the_package_are_suggested() -> None:
    assert kn.__version__ == metadata.version("knotless")
    assert kn.Plan is type(kn.plan("ring,4"))
    assert not hasattr(kn, "__wrapped__")
    with pytest.raises(AttributeError, match="knotless has no 'simulte'; did you mean 'simulate'"):
        _ = kn.simulte


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("knotless.drawing")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(kn.KnotlessError, match="^matplotlib.* is not installed: (tools|pip)"):
        kn.draw("ring,4")
