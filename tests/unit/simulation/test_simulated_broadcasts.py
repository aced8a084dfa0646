"""Broadcasts in the simulator: a host's are limited where they enter its first switch."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from click.testing import CliRunner

from knotless._core.simulator import wire_bytes
from knotless.base.errors import SimulationError
from knotless.cli.commands.simulate import command
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Result, Scenario, simulate
from knotless.simulation.settings import BROADCAST
from knotless.simulation.verdict import cautions
from knotless.topologies import load

US = 2_000_000


def run(spec: str, *senders: tuple[str, int], **settings: Any) -> Result:
    plan = make_plan(load(spec), multicast={1: ["all"]})
    return simulate(Scenario(plan, "multicast", senders=senders, duration_us=US, **settings))


def drops(result: Result, cause: str = "broadcast_limit") -> int:
    counted: int = result.summary()["drops"][cause]
    return counted


def test_a_host_that_floods_is_limited_and_named_and_nothing_is_lost() -> None:
    result = run("torus,4,4", ("h1", BROADCAST))
    summary = result.summary()
    # 2 % of 10 Mbit/s for two seconds, and the burst, in frames to 15 hosts.
    allowed = (10e6 * 0.02 * US / 1e6 / 8 + 65_536) / wire_bytes(1518)
    assert abs(summary["packets"] / 15 - allowed) <= 2
    assert summary["lost_frames"] == 0
    assert drops(result) > 1500
    (problem,) = summary["problems"]
    assert "host h1 " in problem
    assert str(drops(result)) in problem
    assert "no frame lost" in summary["verdict"]
    assert "BROADCASTS LIMITED" in summary["verdict"]


def test_declared_groups_are_not_limited_and_have_the_same_result_as_without_a_limit() -> None:
    declared = run("torus,4,4", ("h1", 1))
    unlimited = run("torus,4,4", ("h1", BROADCAST), broadcast_share=0.0)
    assert declared.result_sha256 == unlimited.result_sha256
    assert drops(declared) == drops(unlimited) == 0
    assert declared.problems == []
    (problem,) = unlimited.problems
    assert "host h1 " in problem
    assert "no limit is set" in problem


def test_a_bystander_keeps_its_rate_beside_a_host_that_floods() -> None:
    """h2 sends to a declared group, at its whole line; h1 floods, or not at all."""
    rates = {}
    for name, share, senders in [
        ("alone", 0.02, [("h2", 1)]),
        ("limited", 0.02, [("h1", BROADCAST), ("h2", 1)]),
        ("unlimited", 0.0, [("h1", BROADCAST), ("h2", 1)]),
    ]:
        rates[name] = float(run("torus,4,4", *senders, broadcast_share=share).flows_mbps[-1])
    assert rates["limited"] > 0.93 * rates["alone"]  # with its burst, h1 has 5 % of two seconds
    assert rates["unlimited"] < 0.6 * rates["alone"]


@pytest.mark.seeds(12)
def test_what_passes_never_exceeds_burst_and_share_and_none_within_is_dropped(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a family of cases
    spec = rng.choice(["ring,4", "mesh,3,3", "fattree2,4", "clos,4,hosts=2"])
    share, burst = rng.choice([0.01, 0.05, 0.3, 1.0]), rng.choice([1542, 9000, 65_536])
    sent = rng.choice([0.005, 0.02, 0.2, 0.9])
    packet = rng.choice([64, 500, 1500])
    result = run(
        spec,
        ("h1", BROADCAST),
        load=Load("constant", sent),
        packet_bytes=packet,
        broadcast_share=share,
        broadcast_burst_bytes=burst,
    )
    fabric = result.scenario.plan.fabric
    h1 = result.channels.place["h1"]
    passed = int(result.report.channel_rx_frames[h1])
    on_wire = wire_bytes(packet + 18)
    line_bytes = fabric.hosts[0].rate_mbps * US / 8
    assert passed * on_wire <= burst + share * line_bytes
    if sent <= share:
        assert drops(result) == 0
    else:
        assert passed * on_wire >= min(sent, share) * line_bytes * 0.98 - 2 * on_wire
    assert result.lost_frames == 0


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"broadcast_share": 1.5}, "1.5 of the line"),
        ({"broadcast_share": float("nan")}, "nan of the line"),
        ({"broadcast_burst_bytes": 10}, "10 bytes"),
    ],
)
def test_a_limit_that_is_not_possible_is_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SimulationError, match=named):
        run("ring,4", ("h1", BROADCAST), **settings)


def test_the_command_shows_the_host() -> None:
    arguments = ["ring,4", "--send", "h1=all", "--duration", str(US)]
    shown = CliRunner().invoke(command, arguments).output
    assert "host h1 fills over 2 % of its line" in shown
    given = CliRunner().invoke(
        command, [*arguments, "--broadcast-limit", "0.5", "--broadcast-burst", "2000", "--json"]
    )
    summary = json.loads(given.output)
    assert "over 50 % of its line" in summary["problems"][0]
    assert summary["lost_frames"] == 0


@pytest.mark.parametrize(("burst", "passes"), [(9037, False), (9038, True)])
def test_a_burst_that_lets_no_frame_pass_is_named_before(burst: int, *, passes: bool) -> None:
    options = {"packet_bytes": 9000, "broadcast_burst_bytes": burst, "flow_control": "pause"}
    result = run("ring,4", ("h1", BROADCAST), **options)
    assert bool(result.summary()["packets"]) == passes
    assert bool(cautions(result.scenario)) != passes
    assert cautions(run("ring,4", ("h1", 1), **options).scenario) == []


@pytest.mark.parametrize("text", ["h1=0", "h1=every", "all"])
def test_other_receivers_are_refused(text: str) -> None:
    result = CliRunner().invoke(command, ["ring,4", "--send", text])
    assert "is written HOST=N, to all HOST=all" in str(result.exception)
