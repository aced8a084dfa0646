"""The exit statuses of commands are those of the table on their page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from tests.support import REPOSITORY

PAGE = REPOSITORY / "docs/reference/exit-statuses.md"
ROWS = re.findall(r"^\| `knotless ([^`]+)` \| (\d+) \|", PAGE.read_text(), re.MULTILINE)


def test_commands_end_with_the_status_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run one after the other in one folder, as a reader runs them."""
    monkeypatch.chdir(tmp_path)
    assert {status for _, status in ROWS} == {"0", "1", "2", "3"}
    for words, status in ROWS:
        done = CliRunner(mix_stderr=False).invoke(main, shlex.split(words), prog_name="knotless")
        assert done.exit_code == int(status), (words, done.output, done.stderr)
        if status == "2":
            assert (done.stdout, done.stderr.count("\n")) == ("", 1), words
