"""``knotless simulate``: its JSON, exit status and error messages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.errors import SimulationError
from knotless.cli.commands.simulate import command
from knotless.cli.commands.simulate.options import FAILED
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
    ("arguments", "status"), [(CYCLIC, FAILED), ([*CYCLIC[:1], "--pattern", "shift:1"], 0)]
)
def test_a_deadlock_fails_when_asked_to(arguments: list[str], status: int) -> None:
    done = CliRunner().invoke(
        command, [*arguments, "--fail-on-deadlock", "--json"], standalone_mode=False
    )
    assert done.return_value == status


def test_a_run_that_ends_too_early_says_so_first_and_fails_when_asked_to() -> None:
    early = ["ring,4", "--engine", "updown", "--pattern", "shift:1", "--duration", "1us"]
    done = CliRunner().invoke(command, early, standalone_mode=False)
    assert done.return_value == 0
    assert done.output.splitlines()[0].endswith(
        "nothing delivered in 1 us: give a longer --duration"
    )
    asked = [*early, "--fail-on-nothing-delivered"]
    assert CliRunner().invoke(command, asked, standalone_mode=False).return_value == FAILED
    asked[asked.index("1us")] = "10ms"
    assert CliRunner().invoke(command, asked, standalone_mode=False).return_value == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ring,4"], "give one of --pattern, --trace, --send, --sizes, --incast, --collective"),
        (["ring,4", "--pattern", "shift:1", "--load", "-1"], "load must be over 0"),
        (["ring,4", "--pattern", "nonsense"], "there is no pattern"),
        (["ring,4", "--pattern", "shift:1", "--cut", "s1"], "SWITCH:PORT@MICROSECONDS"),
        (["ring,4", "--trace", "/nowhere.csv"], "cannot be read"),
        (["ring,4", "--goal", "/nowhere.goal"], "/nowhere.goal: cannot be read"),
        (["ring,4", "--sizes", "nonsense"], "must be websearch, hadoop or the name of a .csv file"),
        (["ring,4", "--sizes", "hadoop", "--pattern", "shift"], "pattern shift has phases"),
        (["ring,4", "--sizes", "hadoop", "--load", "2"], "load must be over 0 and at most 1"),
        (["ring,4", "--sizes", "hadoop", "--trace", "a.csv"], "give one of --pattern, --trace"),
        (["ring,4", "--sizes", "hadoop", "--arrivals", "constant"], "does not take --arrivals"),
        (["ring,4", "--incast", "2"], "--incast '2': must be N:BYTES, or hosts as h1,h2:BYTES"),
        (["ring,4", "--incast", "4:100"], "an incast needs 1 to 3 senders on ring,4"),
        (["ring,4", "--incast", "2:100", "--pattern", "shift:1"], "give one of --pattern"),
        (["ring,4", "--incast-to", "h1", "--goal", "a"], "--incast-to is for --incast"),
        (["ring,4", "--collective", "nonsense"], "there is no collective 'nonsense'"),
        (["ring,4", "--collective", "all-to-all:9"], "ring,4 has 4 hosts, not 9"),
        (["ring,4", "--collective", "all-to-all:h1,h9"], "ring,4 has no host 'h9'"),
        (["ring,4", "--collective", "all-to-all", "--load", "0.5"], "does not take --load"),
        (["ring,4", "--collective", "all-to-all", "--goal", "a"], "cannot be combined"),
        (["ring,4", "--pattern", "shift:1", "--plot", "a.txt"], "must end in .svg or .png or .pdf"),
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


def test_no_channel_carries_more_than_its_line() -> None:
    """The frame that is under way at the end has more bytes than its line carries in 1 us."""
    arguments = ["ring,4", "--pattern", "shift:2", "--duration", "1us", "--json"]
    assert json.loads(CliRunner().invoke(command, arguments).output)["max_channel_load"] == 1.0


def test_a_workload_is_printed_drawn_and_written(tmp_path: Path) -> None:
    plot, out = tmp_path / "times.svg", tmp_path / "all.json"
    workload = ["flat,6", "--incast", "h2,h3,h4:400000", "--incast-to", "h1"]
    done = CliRunner().invoke(command, [*workload, "--plot", str(plot), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("incast on flat,6")
    assert "completion times of messages, us" in done.output
    assert "above 100,000 to 1,000,000" in done.output
    assert "s1:1/0 is congested" not in done.output
    assert "completion time, us" in plot.read_text()
    written = json.loads(out.read_text())
    assert [row["bytes"] for row in written["by_message"]] == [400_000] * 3
    assert written["pause_tree"][0]["congested"] == "s1:1/0"
    quiet = CliRunner().invoke(command, [*workload, "--json"])
    assert "pause_tree" not in json.loads(quiet.output)


def test_pause_trees_are_printed_and_drawn(tmp_path: Path) -> None:
    plot = tmp_path / "tree.svg"
    arguments = ["mesh,3,1,hosts=3", "--pause-tree", "--plot", str(plot)]
    incast = ["--incast", "h2,h3,h7:300000", "--incast-to", "h1"]
    done = CliRunner().invoke(command, [*arguments, *incast])
    assert done.exit_code == 0, done.output
    printed = re.findall(r"^ +(\S+) paused at", done.output, re.MULTILINE)
    assert {"h2/0", "h3/0"} <= {*printed}
    assert "s1:1/0 is congested" in done.output
    drawn = plot.read_text()
    assert all(f">{name}</text>" in drawn for name in ["s1:1/0: congested", *printed])
    assert "completion time" not in drawn
    with pytest.raises(SimulationError, match="no channel was paused: there is nothing to plot"):
        CliRunner().invoke(
            command, [*arguments, "--pattern", "shift:1", "--load", "0.01"], catch_exceptions=False
        )


def test_a_collective_says_how_far_it_is_from_its_bound() -> None:
    arguments = ["torus,3,3", "--collective", "ring-allreduce:5", "--message-bytes", "50000"]
    values = json.loads(CliRunner().invoke(command, [*arguments, "--json"]).output)
    assert values["pattern"] == "ring-allreduce"
    ratio = values["collective_us"] / values["collective_bound_us"]
    assert values["collective_ratio"] == pytest.approx(ratio, abs=1e-6)
    assert ratio >= 1
