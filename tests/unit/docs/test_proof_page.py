"""The page on proofs shows what the verifier prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from tests.support import REPOSITORY
from tests.support.proofs import BUILT, run

PAGE = REPOSITORY / "docs/explanation/proof.md"


@BUILT
def test_the_page_shows_what_verify_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    for command in re.findall(r"^knotless ((?:flows|check) .*)", text, re.MULTILINE):
        assert CliRunner().invoke(main, command.split()).exit_code == 0
    shown = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert shown == [run("rules", "ring.proof").text]
