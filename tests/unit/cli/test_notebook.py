"""The functions for notebooks: they give what the commands print, and display themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import knotless as kn
from knotless.base.errors import KnotlessError, PlanError
from knotless.cli.main import main
from knotless.simulation import Load

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
