"""Mistakes of users on the command line: one line that says what is wrong, and exit status 2."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

import knotless as kn
from docs.generator.commands import all_commands
from knotless.cli.main import main
from knotless.controller import config
from knotless.controller.config import ConfigError
from knotless.emulation import names, requirements
from knotless.routing.request import PlanRequest
from knotless.simulation.transport import transport_of
from knotless.traffic.collectives.collective import collective_named
from knotless.traffic.patterns.pattern import pattern_named
from knotless.traffic.sizes import sizes_named
from tests.support import REPOSITORY
from tests.support.every import holds_for_every

MISTAKES = yaml.safe_load((REPOSITORY / "tests/data/mistakes.yaml").read_text())


def call(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")


def is_one_line(mistake: dict[str, str]) -> None:
    done = call(*mistake["words"].split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("knotless: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert mistake["says"] in done.stderr, done.stderr


def test_each_mistake_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(requirements, "why_not", lambda: None)
    monkeypatch.setattr(names, "RUN_DIRECTORY", tmp_path / "run")
    assert call("flows", "torus,4,4", "--engine", "dor", "--out", "rules").exit_code == 0
    Path("lab.clab.yml").write_text("name: lab\n")
    holds_for_every(is_one_line, MISTAKES, lambda mistake: str(mistake["words"]))


def test_what_is_no_number_or_word_is_said_alike_everywhere(tmp_path: Path) -> None:
    """Options, files and calls say the same of a value, whatever they call the setting."""
    settings = tmp_path / "lab.yaml"
    for name, value, words in (
        ("vcs", 99, "99 is not at most 8"),
        ("hash_seed", -1, "-1 is not at least 0"),
        ("flow_control", "some", "'some' is not one of 'auto', 'none', 'host', 'switch', 'pause'"),
        ("vlans", "forest", "'forest' is not one of 'default', 'tree'"),
    ):
        option = f"--{name.replace('_', '-')}"
        assert words in call("plan", "ring,4", option, str(value)).stderr
        with pytest.raises(kn.KnotlessError, match=words):
            kn.plan("ring,4", **{name: value})
        settings.write_text(f"fabric: ring,4\n{name}: {value}\n")
        with pytest.raises(ConfigError, match=words):
            config.read(settings)


def test_upper_case_is_no_mistake() -> None:
    options = [option for _, command in all_commands() for option in command.params]
    choices = [option.type for option in options if isinstance(option.type, click.Choice)]
    assert len(choices) > 10
    assert not any(choice.case_sensitive for choice in choices)
    assert PlanRequest.from_options(engine="DOR").engine == "dor"
    assert transport_of(["DCQCN"]) == transport_of(["dcqcn"])
    assert collective_named("Ring-AllReduce") == collective_named("ring-allreduce")
    assert pattern_named("Shift:2").name == "shift:2"
    assert sizes_named("WebSearch") == sizes_named("websearch")
    assert PlanRequest.from_options(engine="My/Own.py").engine == "My/Own.py"

    assert PlanRequest.from_options(flow_control="PFC", tagging="Host").flow_control == "pfc"
    words = ("plan", "Ring,4", "--engine", "updown", "--flow-control", "PFC", "--json")
    assert '"flow_control": "pfc"' in call(*words).stdout
