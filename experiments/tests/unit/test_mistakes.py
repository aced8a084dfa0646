"""Invalid values for every option of every experiment: an error of one line, nothing is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless_experiments.commands import run as command
from knotless_experiments.framework import experiment as catalogue
from tests.support.every import holds_for_every

FOLDERS = ("--out", "--traces")
WRONG = {
    click.types.IntParamType: ("x", "-1", "1" + 30 * "0"),
    click.types.FloatParamType: ("x", "-1", "nan", "inf"),
    click.Choice: ("x", "", "NORMAL "),
    click.types.StringParamType: ("no such thing", "\x00", "9" * 30),
}


def mistakes(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield (place, option, value) for every option of an experiment."""
    ours = command.command.get_command(click.Context(command.command), name)
    for option in [] if ours is None else ours.params:
        flag = option.opts[0]
        if flag in (*FOLDERS, "--on") or getattr(option, "is_flag", False):
            continue
        (values,) = [WRONG[kind] for kind in WRONG if isinstance(option.type, kind)]
        for place in catalogue.load(name).places:
            yield from ((place, flag, value) for value in values)


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", catalogue.names())
def test_nothing_is_built(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        pytest.fail("it was begun")

    def is_refused(case: tuple[str, str, str]) -> None:
        place, flag, value = case
        asked = ["run", name, "--on", place, "--quick", flag, value, "--out", str(out)]
        result = CliRunner(mix_stderr=False).invoke(main, asked)
        assert result.exit_code == 2, (result.stdout, result.stderr, result.exception)
        assert result.stderr.count("\n") == 1
        assert not out.exists()

    monkeypatch.setattr(command, "execute", never)
    out = tmp_path / "results"
    holds_for_every(is_refused, mistakes(name))
