"""``--credit-bytes`` and ``--credit-unit`` of commands that start a fabric."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from knotless.cli.commands._switch_options import credit_options
from knotless.cli.main import main


@click.command()
@credit_options
def shows(buffer: dict[str, int] | None) -> None:
    click.echo(json.dumps(buffer))


@pytest.mark.parametrize(
    ("asked", "buffer"),
    [
        ([], None),
        (["--credit-bytes", "3072"], {"credit_bytes": 3072}),
        (["--credit-unit", "cells:256"], {"credit_unit_bytes": 256}),
        (
            ["--credit-bytes", "3072", "--credit-unit", "blocks"],
            {"credit_bytes": 3072, "credit_unit_bytes": 64},
        ),
    ],
)
def test_the_emulator_gets_what_is_given(asked: list[str], buffer: dict[str, int] | None) -> None:
    assert json.loads(CliRunner().invoke(shows, asked).output) == buffer


@pytest.mark.parametrize("asked", [["--credit-bytes", "0"], ["--credit-unit", "cells:0"]])
def test_impossible_sizes_are_refused(asked: list[str]) -> None:
    assert CliRunner().invoke(shows, asked).exit_code == 2


@pytest.mark.parametrize("name", ["up", "lab"])
def test_commands_that_start_a_fabric_take_them(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help-all"])
    assert "--credit-bytes BYTES" in capsys.readouterr().out
