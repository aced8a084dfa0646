"""The drawing of collective operations beside their lower bounds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.commands.simulate import command
from knotless.routing.plan import make_plan
from knotless.simulation import Scenario, simulate
from knotless.simulation.collective_bound import collective_bound_ps
from knotless.simulation.collective_plot import GroupTimes, group_times
from knotless.simulation.run import prepare
from knotless.simulation.units import PICOSECONDS_PER_US
from knotless.simulation.workload import CollectiveRun
from knotless.topologies import load

LINES = ["--rate", "10000", "--delay", "1"]


def drawn(path: Path, *arguments: str) -> list[str]:
    """Return the texts in the drawing of a simulation."""
    plot = path / "plot.svg"
    done = CliRunner().invoke(command, [*arguments, "--plot", str(plot)])
    assert done.exit_code == 0, done.output
    return re.findall(r"<text[^>]*>([^<]*)</text>", plot.read_text())


def test_a_collective_is_drawn_beside_its_bound(tmp_path: Path) -> None:
    name = "halving-doubling-allreduce"
    result = simulate(
        Scenario(
            make_plan(load("mesh,4,4,rate=10000,delay=1"), "dor"),
            "uniform",
            workload=CollectiveRun(name, 1_000_000),
        )
    )
    (group,) = group_times(result)
    assert (group.time_us, group.bound_us) == (result.program_us, result.bound_us)
    ratio = result.summary()["collective_ratio"]
    assert ratio > 1.1
    texts = drawn(tmp_path, "mesh,4,4", "--engine", "dor", "--collective", name, *LINES)
    assert {f"{name} on mesh,4,4", f"{ratio:.3f} x", "lower bound (1 x)", "rank"} <= {*texts}
    assert {"completion time, us", "slowdown"} <= {*texts}


def test_each_rail_has_its_own_bound(tmp_path: Path) -> None:
    fabric = load("rail,4,2,2,rate=10000,delay=1")
    slower = tuple(
        replace(host, rate_mbps=5000.0) if number >= 4 else host
        for number, host in enumerate(fabric.hosts)
    )
    run = CollectiveRun("ring-allreduce", 400_000, by_rail=True)
    scenario = Scenario(make_plan(replace(fabric, hosts=slower), "updown"), "uniform", workload=run)
    result = simulate(scenario)
    fast, slow = group_times(result)
    assert fast.time_us is not None
    assert slow.time_us is not None
    assert slow.time_us == result.program_us
    assert fast.time_us < 0.6 * slow.time_us
    assert (fast.bound_us, slow.bound_us) == (fast.time_us, slow.time_us)
    # All rails as one set of transfers have the bound of the slowest rail.
    plan = scenario.plan
    joint_ps = collective_bound_ps(
        prepare(scenario)[0],
        plan.fabric,
        run.transfers(plan.fabric),
        run.places(plan.fabric),
        scenario.demand.packet_bytes,
    )
    assert result.bound_us == slow.bound_us == joint_ps / PICOSECONDS_PER_US
    texts = drawn(tmp_path, "rail,4,2,2", "--collective", "ring-allreduce:rails", *LINES)
    assert texts.count("1.000 x") == 2
    assert "rail" in texts


def test_only_some_of_many_rails_are_labelled(tmp_path: Path) -> None:
    texts = drawn(tmp_path, "rail,4,10,2", "--collective", "ring-allreduce:rails", *LINES)
    assert texts.count("1.000 x") == 5


def test_what_has_not_finished_is_said(tmp_path: Path) -> None:
    duration = ["--duration", "1000", *LINES]
    texts = drawn(tmp_path, "mesh,4,4", "--collective", "tree-broadcast", *duration)
    assert {"not", "finished", "lower bound (1 x)"} <= {*texts}


@pytest.mark.filterwarnings("error")
def test_a_collective_on_a_hub_has_no_bound(tmp_path: Path) -> None:
    hub = ["hub,4", "--collective", "ring-allreduce", "--message-bytes", "4000"]
    for more in ([], ["--duration", "2000"]):
        texts = drawn(tmp_path, *hub, *more)
        assert "operation" in texts
        assert "lower bound (1 x)" not in texts
        assert not [text for text in texts if text.endswith(" x")]
        assert ("finished" in texts) == bool(more)


def test_other_traffic_has_no_bar(tmp_path: Path) -> None:
    texts = drawn(tmp_path, "flat,4", "--incast", "h2,h3:40000", "--incast-to", "h1")
    assert "completion time, us" in texts
    assert "operation" not in texts


def test_a_group_has_finished_when_its_last_host_has() -> None:
    done = GroupTimes((3.0, 5.0, 0.0), 4.0)
    assert (done.time_us, done.highest_us, done.label) == (5.0, 5.0, "1.250 x")
    waiting = replace(done, hosts_us=(3.0, None))
    assert (waiting.time_us, waiting.highest_us, waiting.label) == (None, 4.0, "not\nfinished")
    assert replace(done, bound_us=None).label == ""
