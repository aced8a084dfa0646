"""Invalid values for every option of every experiment: an error of one line, nothing is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from knotless.cli.commands import run as command
from knotless.cli.main import main
from knotless.experiments.framework import experiment as catalogue

FOLDERS = ("--out", "--traces")
WRONG = {
    click.types.IntParamType: ("x", "-1", "1" + 30 * "0"),
    click.types.FloatParamType: ("x", "-1", "nan", "inf"),
    click.Choice: ("x", "", "NORMAL "),
    click.types.StringParamType: ("no such thing", "\x00", "9" * 30),
}


def mistakes() -> Iterator[tuple[str, str, str, str]]:
    """Yield (experiment, place, option, value)."""
    for name in catalogue.names():
        ours = command.command.get_command(click.Context(command.command), name)
        for option in [] if ours is None else ours.params:
            flag = option.opts[0]
            if flag in (*FOLDERS, "--on") or getattr(option, "is_flag", False):
                continue
            (values,) = [WRONG[kind] for kind in WRONG if isinstance(option.type, kind)]
            for place in catalogue.load(name).places:
                yield from ((name, place, flag, value) for value in values)


@pytest.mark.parametrize(("name", "place", "flag", "value"), mistakes())
def test_nothing_is_built(
    name: str, place: str, flag: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        pytest.fail("it was begun")

    monkeypatch.setattr(command, "execute", never)
    out = tmp_path / "results"
    asked = ["run", name, "--on", place, "--quick", flag, value, "--out", str(out)]
    result = CliRunner(mix_stderr=False).invoke(main, asked)
    assert result.exit_code == 2, (result.stdout, result.stderr, result.exception)
    assert result.stderr.count("\n") == 1
    assert not out.exists()
