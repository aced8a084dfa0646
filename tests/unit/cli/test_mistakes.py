"""Mistakes of users on the command line: one line that says what is wrong, and exit status 2."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from knotless.cli.main import main
from knotless.emulation import requirements
from knotless.routing.request import PlanRequest
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
    assert call("flows", "torus,4,4", "--engine", "dor", "--out", "rules").exit_code == 0
    Path("lab.clab.yml").write_text("name: lab\n")
    holds_for_every(is_one_line, MISTAKES, lambda mistake: str(mistake["words"]))


def test_upper_case_is_no_mistake() -> None:
    assert PlanRequest.from_options(flow_control="PFC", tagging="Host").flow_control == "pfc"
    words = ("plan", "Ring,4", "--engine", "updown", "--flow-control", "PFC", "--json")
    assert '"flow_control": "pfc"' in call(*words).stdout
