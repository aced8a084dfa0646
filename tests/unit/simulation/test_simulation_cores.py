"""Simulations on several cores: every result is that of one core."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.commands.simulate import command
from knotless.routing.plan import make_plan
from knotless.simulation import (
    Buffers,
    HostPause,
    LinkChange,
    Load,
    Result,
    Scenario,
    simulate,
)
from knotless.simulation.recorder import Recorder
from knotless.simulation.result import by_channel, by_flow, by_message
from knotless.topologies import load

LINES = "rate=10000,delay=1"
SATURATE, POISSON = Load(), Load("poisson", 0.3)
CUTS = tuple(
    LinkChange(at_us, f"s{number}:{3 + number % 4}", up)
    for number in range(1, 16)
    for at_us, up in [(100.0 + number, False), (200.0 + number, True)]
)


def scenario(
    spec: str,
    engine: str,
    pattern: str,
    load_: Load = SATURATE,
    us: float | None = 300.0,
    **more: Any,
) -> Scenario:
    routing = {key: more.pop(key) for key in ("vcs", "select", "multipath") if key in more}
    plan = make_plan(load(f"{spec},{LINES}"), engine, hash_seed=1, **routing)
    return Scenario(plan, pattern, load_, duration_us=us, **more)


def everything(result: Result) -> tuple[Any, ...]:
    report = result.report
    return (
        result.result_sha256,
        report.first_pauses,
        report.deadlocks,
        report.last_arrival_ps,
        by_flow(result),
        by_channel(result),
        by_message(result),
    )


def on_cores(scenario: Scenario, counts: tuple[int, ...] = (2, 3)) -> Result:
    """Compare one core with several, and return the result."""
    one = simulate(scenario)
    for cores in counts:
        several = simulate(scenario, cores=cores)
        assert (several.cores, several.one_core_because) == (cores, None)
        assert everything(several) == everything(one)
    return one


@pytest.mark.parametrize("flow_control", ["pause", "pfc", "credits"])
def test_flow_controls(flow_control: str) -> None:
    on_cores(scenario("torus,6,6", "dor", "transpose", us=200, flow_control=flow_control))


@pytest.mark.parametrize(
    "one",
    [
        scenario("torus,4,4,hosts=3", "dor", "uniform", POISSON, warm_up_us=100),
        scenario("torus,3,3,3", "dor", "tornado"),
        scenario("mesh,5,4", "dor", "permutation", cut_through=64),
        scenario("fattree3,4", "fattree", "permutation"),
        scenario("fattree3,4", "fattree", "permutation", Load("constant", 0.5)),
        scenario("fattree2,4", "fattree", "shift:4", multipath="ecmp"),
        scenario("torus,4,4,hosts=2", "adaptive", "permutation", flow_control="pfc"),
        scenario("random,20,degree=4,hosts=2,seed=1", "adaptive", "permutation", POISSON),
        scenario("lsft,3", "lsft", "schedule", Load(barrier=False), None),
        scenario("lsft,3", "lsft", "schedule", Load(barrier=False, message_bytes=9000), None),
        scenario("random,20,degree=4,hosts=2,seed=1", "updown", "permutation"),
        scenario("torus,6,6", "dor", "transpose", buffers=Buffers(xoff=3000, xon=1600)),
        scenario("torus,4,4", "dor", "permutation", buffers=Buffers(xoff=3000, headroom=0)),
        scenario(
            "torus,4,4,hosts=2",
            "dor",
            "uniform",
            POISSON,
            host_pauses=(HostPause(50.0, "h5", 120.0), HostPause(100.0, "h20")),
            receiver_rates=(("h3", 100.0), ("h17", 500.0)),
        ),
        scenario(
            "torus,4,4,hosts=3",
            "dor",
            "uniform",
            Load("poisson", 0.4, message_bytes=20_000),
            take_turns=True,
            completions=True,
        ),
    ],
    ids=lambda one: f"{one.plan.fabric.name} {one.demand.name} {one.demand.load.arrivals}",
)
def test_fabrics_and_traffic(one: Scenario) -> None:
    on_cores(one)


@pytest.mark.parametrize("flow_control", ["pause", "pfc", "credits"])
def test_links_that_are_cut_and_restored(flow_control: str) -> None:
    result = on_cores(
        scenario(
            "torus,4,4,hosts=2",
            "dor",
            "permutation",
            flow_control=flow_control,
            link_changes=CUTS,
        )
    )
    assert result.lost_frames > 0


@pytest.mark.parametrize(
    ("flow_control", "changes"), [("pause", ()), ("pfc", ()), ("credits", ()), ("pause", CUTS)]
)
def test_deadlocks(flow_control: str, changes: tuple[LinkChange, ...]) -> None:
    result = on_cores(
        scenario(
            "torus,6,6,hosts=2",
            "dor",
            "tornado",
            us=800,
            vcs=1,
            select="low-port",
            flow_control=flow_control,
            link_changes=changes,
        )
    )
    assert result.knot


def test_deadlocks_of_frames_that_wait_for_several_outputs() -> None:
    one = scenario("torus,6,6,hosts=2", "adaptive", "tornado", us=800, flow_control="pause")
    assert on_cores(one).knot


def test_watchdogs() -> None:
    result = on_cores(
        scenario(
            "torus,6,6,hosts=2",
            "dor",
            "tornado",
            us=800,
            vcs=1,
            select="low-port",
            flow_control="pause",
            watchdog_us=100.0,
        )
    )
    assert result.storms()["detected"] > 0


def test_deadlocks_that_are_found_on_the_way() -> None:
    result = on_cores(
        scenario(
            "torus,8,8,hosts=2",
            "dor",
            "uniform",
            Load("poisson", 0.9),
            us=3000,
            vcs=1,
            select="low-port",
            flow_control="pause",
        )
    )
    assert result.report.events > 2**17
    assert result.knot


@pytest.mark.parametrize(
    "arguments",
    [
        ["fattree3,4", "--sizes", "websearch", "--load", "0.5", "--duration", "1500"],
        ["fattree3,4", "--incast", "8:90000"],
        ["fattree3,4", "--collective", "ring-allreduce"],
    ],
)
def test_workloads(arguments: list[str]) -> None:
    def run(cores: int) -> dict[str, Any]:
        lines = ["--rate", "10000", "--delay", "1", "--cores", str(cores), "--json"]
        done = CliRunner(mix_stderr=False).invoke(
            command, [*arguments, *lines], catch_exceptions=False
        )
        values: dict[str, Any] = json.loads(done.stdout)
        assert values["cores"] == cores
        taken = ("wall_s", "setup_s", "packet_hops_per_s", "cores")
        return {key: value for key, value in values.items() if key not in taken}

    assert run(1) == run(2) == run(3)


def test_samples() -> None:
    one = scenario("torus,4,4,hosts=2", "dor", "uniform", POISSON)
    frames = []
    for cores in (1, 2):
        recorder = Recorder.for_scenario(one, 25.0)
        result = simulate(one, None, recorder.run, cores=cores)
        frames.append((result.result_sha256, recorder.recording(result)))
    (first, alone), (second, together) = frames
    assert first == second
    assert alone.frames == together.frames


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["torus,4,4", "--pattern", "tornado", "--message-bytes", "3000"], "acknowledged messages"),
        (["lsft,2", "--pattern", "schedule"], "phases with barriers"),
        (["torus,4,4", "--pattern", "tornado", "--delay", "0"], "links have no delay"),
        (["flat,4", "--pattern", "shift:1"], "there are too few switches"),
        (["hub,4", "--pattern", "shift:1", "--load", "0.1"], "hubs have one medium"),
        (["torus,4,4", "--send", "h1=all"], "multicast"),
        (["flat,9", "--incast", "8:9000", "--transport", "dcqcn"], "transports"),
    ],
)
def test_what_cannot_be_divided_is_simulated_on_one_core(arguments: list[str], reason: str) -> None:
    common = ["--duration", "2000", "--json"]
    one, two = (
        CliRunner(mix_stderr=False).invoke(
            command, [*arguments, *common, "--cores", cores], catch_exceptions=False
        )
        for cores in ("1", "2")
    )
    values = json.loads(two.stdout)
    assert values["cores"] == 1
    assert f"simulated on one core: {reason}" in two.stderr
    assert "one core" not in one.stderr
    assert values["result_sha256"] == json.loads(one.stdout)["result_sha256"]


def test_cores_are_1_to_64() -> None:
    done = CliRunner().invoke(command, ["torus,4,4", "--pattern", "tornado", "--cores", "0"])
    assert done.exit_code == 2
    assert "0 is not at least 1" in done.output
