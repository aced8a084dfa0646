"""``--switch`` of commands that start a fabric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.commands._fabric import checked_plan_of
from knotless.cli.commands._switch_options import emulated_switch_option
from knotless.cli.main import main
from knotless.routing.request import PlanRequest


@click.command()
@emulated_switch_option
def shows(switch_settings: dict[str, Any] | None) -> None:
    click.echo(json.dumps(switch_settings))


def test_the_emulator_gets_what_the_file_says_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "switch.yaml"
    path.write_text("lossless: [3]\nports: {'2': {lossless: []}}\n")
    told = json.loads(CliRunner().invoke(shows, ["--switch", str(path)]).output)
    assert told == {
        "lossless": [3],
        "pools": {},
        "ports": {"2": {"lossless": []}},
        "switches": {},
    }
    assert CliRunner().invoke(shows, []).output == "null\n"


def test_plain_links_have_no_switches_to_set() -> None:
    options = {
        "links": "plain",
        "controller": "ryu",
        "allow_deadlock": False,
        "switch_settings": {"lossless": [3]},
    }
    with pytest.raises(KnotlessError, match="leave out --links plain"):
        checked_plan_of("ring,4", PlanRequest(), None, None, options)


@pytest.mark.parametrize("name", ["simulate", "up", "lab"])
def test_commands_that_have_switches_take_the_option(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert "--switch F.yaml" in capsys.readouterr().out
