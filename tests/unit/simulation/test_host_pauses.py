"""Simulated hosts that pause their links."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.commands.simulate import command
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.simulation import (
    HostPause,
    Load,
    PauseLimit,
    Result,
    Scenario,
    SimulationError,
    simulate,
)
from knotless.simulation.pause_tree import pause_tree, tree_lines
from knotless.topologies import load

NO_LIMIT = PauseLimit(share=1.0)


def run(*pauses: HostPause, **others: Any) -> Result:
    settings: dict[str, Any] = {"pause_limit": NO_LIMIT, "duration_us": 400_000.0, **others}
    plan = make_plan(load("torus,4,4,rate=1000,delay=1"))
    return simulate(Scenario(plan, "shift:1", Load("poisson", 0.3), host_pauses=pauses, **settings))


def test_without_pauses_a_limit_changes_nothing() -> None:
    assert run().result_sha256 == run(pause_limit=PauseLimit()).result_sha256


def test_a_pause_without_end_stops_its_own_flow_and_those_behind_it() -> None:
    result = run(HostPause(1000.0, "h1"))
    packets = dict(zip(result.flows, result.report.flow_packets.tolist(), strict=True))
    usual = dict(zip(result.flows, run().report.flow_packets.tolist(), strict=True))
    assert packets["h16", "h1"] < usual["h16", "h1"] / 100
    assert packets["h5", "h6"] == usual["h5", "h6"]
    (tree,) = [tree for tree in pause_tree(result.report, result.channels) if tree["by_host"]]
    assert tree["congested"] == "s1:1/0"
    assert "s1:1/0 is paused by its host" in list(tree_lines([tree]))
    assert tree["paused"], "its pause has spread"


def test_a_limit_ends_it_and_a_watchdog_drops() -> None:
    limited = run(HostPause(0.0, "h1"), pause_limit=PauseLimit(longest_us=20_000.0))
    port = limited.channels.place["s1:1"]
    assert limited.report.channel_paused_ps[port] == 20_000 * 10**6
    assert limited.lost_frames == 0
    assert not limited.report.channel_storms[0].any()
    watched = run(HostPause(0.0, "h1"), watchdog_us=20_000.0)
    assert watched.report.channel_storms[0][port] == 1
    assert watched.lost_frames > 1000


def test_a_pause_that_ends_is_over() -> None:
    result = run(HostPause(1000.0, "h1", 2000.0), HostPause(3000.0, "h1", 3500.0))
    port = result.channels.place["s1:1"]
    assert result.report.channel_paused_ps[port] == 1500 * 10**6


@pytest.mark.parametrize(
    ("pause", "others", "message"),
    [
        (HostPause(0.0, "h99"), {}, "has no host 'h99'"),
        (HostPause(0.0, "h1"), {"flow_control": "none"}, "h1 cannot pause its link: under no flow"),
        (HostPause(0.0, "h1"), {"flow_control": "credits"}, "use --flow-control pause or pfc"),
        (HostPause(5.0, "h1", 4.0), {}, "end of the pause of h1: 4 us is not in 5"),
        (HostPause(-1.0, "h1"), {}, "pause of h1: -1 us is not in 0"),
    ],
)
def test_impossible_pauses_are_refused(
    pause: HostPause, others: dict[str, Any], message: str
) -> None:
    with pytest.raises(SimulationError, match=message):
        run(pause, **others)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"share": 1.5}, "share of 0 to 1, not 1.5"),
        ({"longest_us": -1.0}, "longest pause of a host: -1 us is not in 0"),
    ],
)
def test_an_impossible_limit_is_refused(limit: dict[str, float], message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        PauseLimit(**limit)


def test_the_command_has_hosts_pause() -> None:
    arguments = ["torus,4,4", "--pattern", "shift:1", "--rate", "1000", "--duration", "1e5"]
    arguments += ["--pause-host", "h1@1000", "--pause-tree"]
    values = json.loads(CliRunner().invoke(command, [*arguments, "--json"]).output)
    assert "s1:1/0" in [tree["congested"] for tree in values["pause_tree"] if tree["by_host"]]
    # The limit by default is 500 ms at once, and without it a pause lasts for ever.
    longer = ["--pause-host", "h1@1000-90000", "--host-pause", "1"]
    told = CliRunner().invoke(command, [*arguments[:-3], *longer, "--pause-tree"]).output
    assert "s1:1/0 is paused by its host" in told


@pytest.mark.parametrize("text", ["h1", "h1@", "@5", "h1@5-", "h1@x", "h1@1-2-3"])
def test_a_mistake_in_a_pause_is_one_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "ring,4", "--pattern", "shift:1", "--pause-host", text])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "written HOST@MICROSECONDS" in told
    assert told.count("\n") == 1
