"""``knotless simulate``: its JSON, exit status and error messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.commands.simulate import DEADLOCKED, command
from knotless.cli.main import main

CYCLIC = ["ring,4", "--engine", "dor", "--vcs", "1", "--select", "low-port", "--pattern", "shift:2"]


def test_json_has_the_public_keys(tmp_path: Path) -> None:
    out = tmp_path / "all.json"
    done = CliRunner().invoke(command, [*CYCLIC, "--json", "--out", str(out)])
    values = json.loads(done.output)
    assert {
        "packets",
        "packet_hops",
        "wall_s",
        "packet_hops_per_s",
        "throughput_mbps",
        "lost_frames",
        "deadlock",
        "knot",
        "result_sha256",
    } <= values.keys()
    assert values["deadlock"]
    assert values["knot"] == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    detail = json.loads(out.read_text())
    assert sum(flow["packets"] for flow in detail["by_flow"]) == values["packets"]
    sent = sum(channel["tx_frames"] for channel in detail["by_channel"])
    assert sent == values["packet_hops"]


@pytest.mark.parametrize(
    ("arguments", "status"), [(CYCLIC, DEADLOCKED), ([*CYCLIC[:1], "--pattern", "shift:1"], 0)]
)
def test_a_deadlock_fails_when_asked_to(arguments: list[str], status: int) -> None:
    done = CliRunner().invoke(
        command, [*arguments, "--fail-on-deadlock", "--json"], standalone_mode=False
    )
    assert done.return_value == status


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ring,4"], "give one of --pattern, --trace and --send"),
        (["ring,4", "--pattern", "shift:1", "--load", "-1"], "load must be over 0"),
        (["ring,4", "--pattern", "nonsense"], "there is no pattern"),
        (["ring,4", "--pattern", "shift:1", "--cut", "s1"], "SWITCH:PORT@MICROSECONDS"),
        (["ring,4", "--trace", "/nowhere.csv"], "cannot be read"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *arguments])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
