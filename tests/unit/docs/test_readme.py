"""The README shows what its first command prints, and stays short."""

from __future__ import annotations

import re

from click.testing import CliRunner

from knotless.cli.main import main
from tests.support import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
MAX_LINES = 110
COMMAND = "tests/data/fabrics/control-knot"


def test_the_verdict_is_what_the_command_prints() -> None:
    shown = re.search(rf"knotless check {COMMAND}\n```\n.*?```\n(.*?)```\n", README, re.DOTALL)
    assert shown is not None
    done = CliRunner().invoke(main, ["check", str(REPOSITORY / COMMAND)])
    assert done.exit_code == 1
    printed = iter(done.output.splitlines())
    for line in shown[1].splitlines():
        assert any(each.startswith(line.removesuffix("...")) for each in printed), line


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= MAX_LINES
