"""What a simulation says of itself: a throughput below the line, a verdict, and cautions."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import event, given
from hypothesis import strategies as st

from knotless._core import simulator
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, Load, Result, Scenario, simulate
from knotless.simulation.verdict import cautions
from knotless.topologies import load
from knotless.topologies.fabric import with_lines

RING = ("simulate", "ring,4", "--engine", "dor", "--vcs", "1", "--select", "low-port")
FROZEN = (*RING, "--pattern", "shift:2")


def run(*words: str) -> tuple[dict[str, Any], str]:
    """Return the JSON of a command, and what it says on standard error."""
    done = CliRunner(mix_stderr=False).invoke(main, [*words, "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_deadlock_before_the_first_message_has_the_throughput_of_what_arrived() -> None:
    values, _ = run(*FROZEN, "--message-bytes", "1000000")
    assert (values["messages"], values["complete_us"], values["packets"]) == (0, 0, 132)
    # All messages begin at 0, so the last packet arrives after the longest latency.
    longest_us = values["latency_us"]["max"]
    assert values["throughput_mbps"] == pytest.approx(132 * 1500 * 8 / longest_us, rel=1e-6)
    assert values["verdict"] == (
        "DEADLOCK since 108820 us: s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> s1:2/0;"
        " 132 packets arrived"
    )


def test_a_short_message_before_a_deadlock_does_not_divide_the_bytes_of_all(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    lines = [f"0,h{i},h{1 + (i + 1) % 4},1000000" for i in range(1, 5)]
    trace.write_text("time_us,source,destination,bytes\n0,h1,h2,100\n" + "\n".join(lines) + "\n")
    values, _ = run(*RING, "--trace", str(trace))
    assert values["messages"] >= 1
    assert values["deadlock"]
    assert 0 < values["throughput_mbps"] < 40


def line_mbps(result: Result) -> float:
    """Return the sum of the lines of all hosts that can receive."""
    return sum(host.rate_mbps for host in result.scenario.plan.fabric.hosts)


@given(st.integers(0, 10**6))
@pytest.mark.examples(1.5)
def test_no_throughput_is_above_the_line(seed: int) -> None:
    """With deadlocks, losses, ends of simulations, warm-ups and messages that stay under way."""
    rng = random.Random(seed)  # noqa: S311
    fabric = with_lines(
        load(rng.choice(["ring,4", "ring,4", "ring,5,hosts=2", "mesh,3,3", "clos,2,hosts=2"])),
        rng.choice([10.0, 1000.0]),
        rng.choice([0.0, 20.0, 500.0]),
    )
    grid = fabric.grid is not None
    engine = "dor" if grid and rng.random() < 0.7 else "updown"
    choices: dict[str, Any] = {"vcs": 1, "select": "low-port"} if engine == "dor" else {}
    acknowledged = rng.random() < 0.6
    arrivals = "acknowledged" if acknowledged else rng.choice(["saturate", "poisson", "constant"])
    ends = acknowledged and rng.random() < 0.7
    warm_up_us = rng.choice([0.0, 0.0, 1000.0])
    scenario = Scenario(
        make_plan(
            fabric, engine, flow_control=rng.choice(["auto", "auto", "auto", "none"]), **choices
        ),
        rng.choice(["shift:2", "shift:2", "permutation", "uniform"])
        if arrivals != "saturate"
        else "shift:2",
        Load(
            arrivals,
            rng.choice([0.2, 0.9]),
            message_bytes=rng.choice([1, 4000, 300_000, 300_000]),
            messages=rng.choice([1, 3]),
        ),
        buffers=Buffers(headroom=rng.choice([None, None, 500]), queue=rng.choice([None, 20_000])),
        warm_up_us=warm_up_us,
        duration_us=None if ends else warm_up_us + rng.choice([50.0, 3000.0, 100_000.0]),
        seed=seed,
    )
    result = simulate(scenario)
    # After a warm-up, a packet of each host may have been on its line before.
    early = 8 * 1500 * len(fabric.hosts) / max(result.report.measured_ps / 1e6, 1e-9)
    most = line_mbps(result) + (early if warm_up_us else 0)
    assert 0 <= result.throughput_mbps <= most
    assert float(result.flows_mbps.max()) <= most
    event(result.verdict.partition(" ")[0] + (" without an end" if ends else ""))


@pytest.mark.parametrize(
    ("words", "verdict", "answer"),
    [
        (
            ["--pattern", "shift:1"],
            "no deadlock, no frame lost; ",
            "no deadlock, no frame lost in ",
        ),
        (
            ["--pattern", "shift:1", "--duration", "100"],
            "NOTHING DELIVERED: at the end, 100 us, 4 packets were under way",
            "nothing delivered",
        ),
        (
            ["--pattern", "shift:1", "--packet-bytes", "1"],
            "NOTHING DELIVERED: at the end, 1600 us, 96 packets were under way",
            "nothing delivered",
        ),
        (
            ["--pattern", "shift:1", "--flow-control", "none", "--queue", "100"],
            "FRAMES LOST: 4 (queue 4); NOTHING DELIVERED: at the end, 2.4e+06 us, 4 packets were",
            "nothing delivered, 4 frames lost",
        ),
        (["--pattern", "shift:2"], "DEADLOCK since ", "froze after 108.8 ms"),
        (
            ["--pattern", "shift:2", "--watchdog", "20000"],
            "DEADLOCK since ",
            "froze after 108.8 ms, until ",
        ),
    ],
)
def test_the_first_line_is_the_verdict(words: list[str], verdict: str, answer: str) -> None:
    values, _ = run(*RING, *words)
    assert values["verdict"].startswith(verdict)
    shown = CliRunner(mix_stderr=False).invoke(main, [*RING, *words]).stdout
    first = shown.splitlines()[0]
    assert answer in first


def test_the_verdict_says_when_a_watchdog_has_ended_a_deadlock() -> None:
    values, _ = run(*FROZEN, "--watchdog", "20000")
    assert values["deadlocks"] > 1
    assert f"the first of {values['deadlocks']}: s1:2/0" in values["verdict"]
    assert f"FRAMES LOST: {values['lost_frames']} (watchdog" in values["verdict"]


CLOS = ("simulate", "clos,4,hosts=2", "--pattern", "transpose")


def test_headroom_below_the_formula_is_said_before_frames_are_lost() -> None:
    needed = simulator.headroom_bytes(10_000_000, 500_000_000, 1522)
    values, said = run(*CLOS, "--headroom", "1000")
    assert values["lost_frames"] == values["drops"]["headroom"] > 0
    assert said == (
        "knotless: headroom of 1000 bytes: a link of 10 Mbit/s and 500 us needs"
        f" {needed}, frames can be lost\n"
    )
    assert f"FRAMES LOST: {values['lost_frames']} (headroom" in values["verdict"]
    for words in (
        ["--headroom", str(needed)],
        ["--headroom", "1000", "--flow-control", "none", "--duration", "100000"],
        [],
    ):
        assert run(*CLOS, *words)[1] == ""


@pytest.mark.parametrize("flow_control", ["pause", "pfc", "switch", "host"])
def test_the_slowest_link_that_pauses_decides_about_headroom(flow_control: str) -> None:
    fabric = load("ring,3")
    slow = with_lines(fabric, None, 900.0)
    mixed = {
        "switch": (fabric.hosts, slow.links),
        "host": (slow.hosts, fabric.links),
    }.get(flow_control, (slow.hosts, fabric.links))
    plan = make_plan(replace(fabric, hosts=mixed[0], links=mixed[1]), flow_control=flow_control)
    needed = simulator.headroom_bytes(10_000_000, 900_000_000, 1522)
    for headroom, count in ((needed - 1, 1), (needed, 0)):
        scenario = Scenario(plan, "shift:1", buffers=Buffers(headroom=headroom))
        assert len(cautions(scenario)) == count


def test_a_queue_shorter_than_a_frame_is_said() -> None:
    words = ["--flow-control", "none", "--duration", "100000", "--queue"]
    assert "a frame has 1518, and none fits into a queue" in run(*CLOS, *words, "1517")[1]
    assert run(*CLOS, *words, "1518")[1] == ""
    # With PAUSE on all links there is no such limit.
    assert run(*CLOS, "--duration", "100000", "--queue", "100")[1] == ""
