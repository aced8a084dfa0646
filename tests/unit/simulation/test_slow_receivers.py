"""Hosts that take frames from their buffer at a rate of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import SimulationError
from knotless.base.switch_settings import SwitchFile
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, LinkChange, Load, Result, Scenario, simulate
from knotless.simulation.pause_tree import pause_tree
from knotless.topologies import load
from knotless.traffic.patterns.pattern import pattern_of

FLAT = "flat,3,rate=10000,delay=1"
PAIR = pattern_of("pair", "to the last", [(0, 2)])
FRAME_BYTES, PACKET_BYTES = 1518, 1500


def run(
    rates: tuple[tuple[str, float], ...], spec: str = FLAT, pattern: Any = PAIR, **more: Any
) -> Result:
    settings: dict[str, Any] = {"load": Load(), "duration_us": 10_000.0, "flow_control": "pfc"}
    settings |= more
    plan = make_plan(load(spec), "updown")
    return simulate(Scenario(plan, pattern, receiver_rates=rates, **settings))


@pytest.mark.parametrize("flow_control", ["pfc", "pause", "host"])
@pytest.mark.parametrize("rate_mbps", [300.0, 2500.0, 9000.0])
def test_a_host_receives_at_its_rate_and_nothing_is_lost(
    rate_mbps: float, flow_control: str
) -> None:
    result = run((("h3", rate_mbps),), flow_control=flow_control, warm_up_us=2000.0)
    expected_mbps = rate_mbps * PACKET_BYTES / FRAME_BYTES
    assert result.throughput_mbps == pytest.approx(expected_mbps, rel=0.01)
    assert result.lost_frames == 0
    # The host pauses its switch, and where switches pause, that pauses the sender.
    report, place = result.report, result.channels.place
    assert report.channel_pauses[place["s1:3"]] > 0
    assert report.channel_pauses[place["h1"]] > 0


def test_a_host_that_is_faster_than_its_line_never_pauses() -> None:
    fast, at_once = run((("h3", 10_000.0),)), run(())
    assert fast.summary()["pauses"] == 0
    assert fast.throughput_mbps == pytest.approx(at_once.throughput_mbps, rel=0.001)
    # Each packet waits until it is taken.
    taken_ps = fast.report.latency.min_ps - at_once.report.latency.min_ps
    assert taken_ps == 8 * FRAME_BYTES * 10**12 // 10**10


def test_without_pauses_a_full_buffer_loses_what_comes() -> None:
    result = run((("h3", 5000.0),), flow_control="none", warm_up_us=2000.0)
    assert result.throughput_mbps == pytest.approx(5000 * PACKET_BYTES / FRAME_BYTES, rel=0.01)
    assert result.summary()["drops"]["headroom"] > 0
    assert "FRAMES LOST" in result.verdict


def test_the_buffer_of_a_host_has_the_limits_of_a_port() -> None:
    """Headroom as its line needs it loses nothing; a frame less than that does."""
    limits = {"xoff": 20_000, "xon": 10_000}
    enough = run((("h3", 100.0),), buffers=Buffers(**limits))
    assert enough.lost_frames == 0
    short = run((("h3", 100.0),), buffers=Buffers(**limits, headroom=1518))
    assert int(short.report.channel_drops[1][short.channels.place["s1:3"]]) > 0


def test_priorities_that_the_switch_does_not_pause_are_lost() -> None:
    lossy = SwitchFile.model_validate({"lossless": []})
    result = run((("h3", 100.0),), switch_settings=lossy)
    assert result.summary()["drops"]["headroom"] > 0
    assert result.report.channel_pauses[result.channels.place["s1:3"]] == 0


def test_pauses_spread_from_a_slow_host() -> None:
    """A slow host holds up the flows of others that share a link with its own."""
    spec = "mesh,2,1,hosts=2,rate=10000,delay=1"
    fabric = load(spec)
    assert [host.switch for host in fabric.hosts] == ["s1", "s1", "s2", "s2"]
    pairs = pattern_of("two", "over one link", [(0, 2), (1, 3)])
    at_once = run((), spec, pairs, warm_up_us=2000.0)
    slow = run((("h3", 100.0),), spec, pairs, warm_up_us=2000.0)
    assert slow.flows_mbps[1] < 0.1 * at_once.flows_mbps[1]
    (tree,) = (tree for tree in pause_tree(slow.report, slow.channels) if not tree["congested"])
    assert [node["channel"] for node in tree["paused"]] == ["s2:1/0"]
    link = f"s1:{fabric.links[0].a_port}/0"
    assert [node["channel"] for node in tree["paused"][0]["paused"]] == [link]
    assert slow.report.deadlock is None


def test_a_pause_is_repeated_after_its_link_was_cut() -> None:
    changes = (LinkChange(3000.0, "s1:3", up=False), LinkChange(3500.0, "s1:3", up=True))
    result = run((("h3", 100.0),), link_changes=changes)
    drops = result.summary()["drops"]
    assert drops["headroom"] == 0
    assert drops["down"] > 0


def test_a_seed_gives_one_result() -> None:
    rates = (("h3", 700.0),)
    assert run(rates).result_sha256 == run(rates).result_sha256 != run(()).result_sha256


@pytest.mark.parametrize(
    ("rates", "more", "message"),
    [
        ((("h9", 1.0),), {}, "has no host 'h9'"),
        ((("h3", 0.0),), {}, "receiver rate of h3: 0 Mbit/s is not in"),
        ((("h3", float("nan")),), {}, "receiver rate of h3: nan Mbit/s is not in"),
        ((("h3", 1.0), ("h3", 2.0)), {}, "receiver 2: it has two rates"),
        ((("h3", 1.0),), {"flow_control": "credits"}, "under credits, hosts take frames at once"),
        ((("h3", 1.0),), {"spec": "hub,3", "flow_control": "auto"}, "hosts of hubs take frames"),
    ],
)
def test_rates_that_are_not_possible_are_refused(
    rates: tuple[tuple[str, float], ...], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(SimulationError, match=message):
        run(rates, **more)


def test_the_command_takes_rates_of_receivers() -> None:
    arguments = ["simulate", FLAT, "--pattern", "shift:1", "--flow-control", "pfc", "--json"]
    done = CliRunner().invoke(main, [*arguments, "--receiver-rate", "h3=100"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["flow_mbps_min"] < 110
    for wrong in ("h3", "h3=x", "100"):
        done = CliRunner().invoke(main, [*arguments, "--receiver-rate", wrong])
        assert done.exit_code == 2
        assert "HOST=MBPS" in done.output
