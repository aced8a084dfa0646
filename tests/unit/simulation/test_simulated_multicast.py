"""Multicast in the simulator follows the trees of the plan, as the rules do."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.commands.simulate import command
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import Plan, make_plan
from knotless.simulation import Load, Scenario, simulate
from knotless.topologies import load
from knotless.topologies.numbering import group_mac, mac_value
from tests.support.one_switch import Frame, Pipeline


def walk(plan: Plan, source: str) -> dict[str, int]:
    """Return how often the rules send a frame of ``source`` to group 1 out of each port."""
    pipelines = {name: Pipeline(name, rules) for name, rules in compile_rules(plan).items()}
    fabric = plan.fabric
    host = fabric.hosts[fabric.host_index[source]]
    frames = [(host.switch, host.port, Frame(group_mac(1), mac_value(host.mac), 0x0800))]
    passed: dict[str, int] = {source: 1}
    while frames:
        switch, port, frame = frames.pop()
        for out, sent in pipelines[switch].outputs(port, frame):
            passed[f"{switch}:{out}"] = passed.get(f"{switch}:{out}", 0) + 1
            peer = fabric.neighbours[switch].get(out)
            if peer is not None:
                frames.append((*peer, sent))
    return passed


@pytest.mark.parametrize(
    ("spec", "engine", "members"),
    [
        ("torus,4,4", "dor", ["all"]),
        ("mesh,4,4,hosts=2", "dor", ["h2", "h9", "h31"]),
        ("irregular-a", "dl", ["h1", "h5", "h7"]),
        ("fattree2,4", "fattree", ["all"]),
    ],
)
def test_frames_take_the_branches_of_the_rules(spec: str, engine: str, members: list[str]) -> None:
    plan = make_plan(load(spec), engine, multicast={1: members})
    result = simulate(
        Scenario(
            plan,
            "multicast",
            Load("constant", 0.05),
            senders=(("h2", 1),),
            flow_control="pfc",
            duration_us=500_000,
        )
    )
    expected = walk(plan, "h2")
    counted = result.report.channel_tx_frames.tolist()
    passed = {
        name: count for name, count in zip(result.channels.names, counted, strict=True) if count
    }
    sent = passed["h2"]
    assert sent > 15
    # The last may still be in flight.
    assert {name: round(count / sent) for name, count in passed.items()} == expected
    others = len(plan.multicast[0].members) - ("h2" in plan.multicast[0].members)
    assert (sent - 1) * others <= result.report.flow_packets[0] <= sent * others
    assert result.lost_frames == 0


def test_senders_that_saturate_their_lines_lose_nothing_on_several_priorities() -> None:
    plan = make_plan(load("torus,5,5,rate=1000,delay=1"), "dor", multicast={1: ["all"]})
    assert plan.vcs == 2
    scenario = Scenario(
        plan,
        "multicast",
        Load("saturate"),
        senders=tuple((f"h{n}", 1) for n in range(1, 26, 7)),
        flow_control="pfc",
        duration_us=20_000,
    )
    result = simulate(scenario)
    assert result.lost_frames == 0
    assert result.report.deadlock is None
    assert result.report.flow_packets.min() > 1000
    # Each host's line carries the traffic of all four, which limits the rate of each.
    assert result.summary()["max_channel_load"] > 0.95


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--send", "h1=1"], "multicast group 1: declare it"),
        (["--send", "h9=1", "--multicast", "1=all"], "has no host 'h9'"),
        (["--send", "h1", "--multicast", "1=all"], "is written HOST=N"),
        (["--send", "h1=1", "--multicast", "1=h1,h7"], "has no host 'h7'"),
        (["--send", "h1=1", "--multicast", "1=all", "--pattern", "shift"], "give one of"),
        (
            ["--send", "h1=1", "--multicast", "1=all", "--message-bytes", "9000"],
            "one packet and are not acknowledged",
        ),
    ],
)
def test_mistakes_are_refused(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(command, ["ring,4", *arguments])
    assert isinstance(done.exception, KnotlessError)
    assert message in str(done.exception)


def test_the_command_sends_to_groups() -> None:
    arguments = ["ring,4", "--multicast", "3=h2,h3", "--send", "h1=3", "--load", "0.1", "--json"]
    done = CliRunner().invoke(command, arguments)
    result = json.loads(done.output)
    assert (result["pattern"], result["flows"]) == ("multicast", 1)
    assert result["packets"] >= 2 * result["messages"] > 0
