"""Credits in the simulator: throughput by theory, knots, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import Buffers, LinkChange, Load, Result, Scenario, simulate
from knotless.simulation.result import by_channel
from knotless.simulation.verdict import cautions
from knotless.topologies import load

RING = PlanRequest(engine="dor", vcs=1, select="low-port")
FRAME_BYTES, ROOM_BYTES = 1522, 1536
"""A tagged frame of 1,500 bytes, and what it takes of a buffer in blocks."""


def one_flow(
    rate_mbps: float, delay_us: float, credit: int, unit: int, folder: Path, count: int = 500
) -> Result:
    """Return the result of ``count`` packets of 1,500 bytes from one switch to another."""
    plan = make_plan(load(f"mesh,2,1,rate={rate_mbps},delay={delay_us}"), "dor")
    trace = folder / "trace.csv"
    trace.write_text(f"time_us,source,destination,bytes\n0,h1,h2,{1500 * count}\n")
    buffers = Buffers(credit=credit, credit_unit=unit)
    return simulate(
        Scenario(plan, "trace", trace=str(trace), flow_control="credits", buffers=buffers)
    )


@pytest.mark.thin(12)
@pytest.mark.parametrize(("rate_mbps", "delay_us"), [(10, 500), (1000, 5), (10_000, 1), (100, 0)])
@pytest.mark.parametrize("unit", [64, 256, 1000])
@pytest.mark.parametrize("frames", [1, 2, 3, 7, 20])
def test_a_flow_gets_the_lesser_of_its_line_and_credit_over_the_round_trip(
    rate_mbps: float, delay_us: float, unit: int, frames: int, tmp_path: Path
) -> None:
    count = 500
    credit = frames * math.ceil(FRAME_BYTES / unit) * unit
    result = one_flow(rate_mbps, delay_us, credit, unit, tmp_path, count)
    assert result.lost_frames == 0
    assert result.report.flow_packets.sum() == count
    # On the link between the switches, where all frames have a tag: received, sent on without it,
    # and the update comes back.
    tagged_us, untagged_us = ((FRAME_BYTES + 20 - tag) * 8 / rate_mbps for tag in (0, 4))
    round_trip_us = tagged_us + untagged_us + 2 * delay_us
    # From the host to the first switch it is as long: untagged there, and tagged on.
    packets_per_us = min(1 / tagged_us, frames / round_trip_us)
    took_us = result.report.completion.max_ps / 1e6
    carried = packets_per_us * (took_us - 3 * (tagged_us + delay_us))
    assert carried == pytest.approx(count, abs=frames + 1)
    used = max(one["account_peak_bytes"] for one in by_channel(result))
    assert used <= min(credit, frames * FRAME_BYTES)


@pytest.mark.parametrize("delay_us", [0, 5, 1000])
def test_default_buffers_give_the_whole_line(delay_us: float) -> None:
    plan = make_plan(load(f"mesh,2,1,rate=1000,delay={delay_us}"), "dor")
    scenario = Scenario(plan, "shift:1", warm_up_us=20_000, duration_us=60_000)
    credits, pause = (
        simulate(scenario.changed(flow_control=name)).flows_mbps for name in ("credits", "pause")
    )
    assert credits.tolist() == pytest.approx(pause.tolist(), rel=1e-3)


@pytest.mark.parametrize("pattern", ["shift:1", "shift:2"])
def test_a_ring_freezes_under_credits_exactly_where_it_does_under_pfc(pattern: str) -> None:
    plan = make_plan(load("ring,4"), RING)
    scenario = Scenario(plan, pattern, duration_us=3e6)
    knots = [simulate(scenario.changed(flow_control=name)).knot for name in ("pfc", "credits")]
    assert knots[0] == knots[1]
    assert bool(knots[0]) == (pattern == "shift:2")
    dateline = make_plan(load("ring,4"), RING.but(vcs=2))
    result = simulate(scenario.changed(plan=dateline, flow_control="credits"))
    assert result.knot == []
    assert result.report.flow_packets.min() > 100


def test_frames_that_lines_lose_and_cuts_discard_cost_no_credit() -> None:
    fabric = load("mesh,3,1")
    lossy = tuple(replace(link, loss=0.05) for link in fabric.links)
    plan = make_plan(replace(fabric, links=lossy), "dor")
    tight = Buffers(credit=2 * ROOM_BYTES)
    cuts = tuple(LinkChange(100_000.0 + 50_000 * n, "s1:2", up=bool(n % 2)) for n in range(10))
    scenario = Scenario(
        plan, "shift:1", flow_control="credits", buffers=tight, duration_us=4e6, link_changes=cuts
    )
    result = simulate(scenario)
    assert result.report.deadlock is None
    lost = result.summary()["drops"]
    assert lost["loss"] > 100
    assert lost["down"] > 0
    assert lost["headroom"] == lost["queue"] == 0
    # The rates of the last two seconds are those without cuts.
    quiet = simulate(scenario.changed(link_changes=(), warm_up_us=2e6))
    late = simulate(scenario.changed(warm_up_us=2e6))
    assert late.flows_mbps.sum() == pytest.approx(quiet.flows_mbps.sum(), rel=0.02)


def test_broadcasts_beyond_the_limit_of_their_host_return_their_credit() -> None:
    plan = make_plan(load("ring,4"), PlanRequest(engine="updown"))
    senders = tuple((host.name, 0) for host in plan.fabric.hosts)
    scenario = Scenario(
        plan,
        "multicast",
        Load("poisson", 0.5),
        senders=senders,
        flow_control="credits",
        buffers=Buffers(credit=ROOM_BYTES),
        broadcast_burst_bytes=2000,
        duration_us=5e6,
    )
    drops = simulate(scenario).summary()["drops"]
    # With credit for one frame, one that is not returned would end all.
    assert drops["broadcast_limit"] > 100
    assert drops["headroom"] == 0


def test_seeds_decide_alone() -> None:
    plan = make_plan(load("torus,4,4"), "dor")
    scenario = Scenario(
        plan,
        "uniform",
        Load("poisson", 0.7),
        flow_control="credits",
        buffers=Buffers(credit=2 * ROOM_BYTES),
        duration_us=200_000,
    )
    first, second, other = (simulate(scenario.changed(seed=seed)) for seed in (1, 1, 2))
    assert first.result_sha256 == second.result_sha256 != other.result_sha256
    assert np.any(first.report.channel_tx_frames)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (
            {"credit": 1535},
            "credit of 1535 bytes is too little for a frame of 1522 bytes in units of 64: it must"
            " be at least 1536",
        ),
        ({"credit_unit": 0}, "a unit of credit has 1 to 65536 bytes, not 0"),
        ({"credit_unit": 2**33}, f"a unit of credit has 1 to 65536 bytes, not {2**33}"),
        ({"credit": -1}, "credit: -1 bytes are not in"),
    ],
)
def test_credit_that_makes_no_sense_is_refused_in_one_line(
    limits: dict[str, int], text: str
) -> None:
    scenario = Scenario(
        make_plan(load("ring,4"), "updown"), "shift:1", flow_control="credits", duration_us=10.0
    )
    with pytest.raises(KnotlessError) as refused:
        simulate(scenario.changed(buffers=Buffers(**limits)))
    assert str(refused.value).startswith(text)


def test_credit_below_the_round_trip_is_said_before_it_slows_a_line_down() -> None:
    plan = make_plan(load("ring,4,rate=10,delay=500"), "updown")
    base = Scenario(plan, "shift:1", flow_control="credits", duration_us=1e6)
    # 1.2336 ms of frame each way and 1 ms of delay: three frames are under way.
    (said,) = cautions(base.changed(buffers=Buffers(credit=3 * ROOM_BYTES - 1)))
    assert said == (
        f"credit of {3 * ROOM_BYTES - 1} bytes: a link of 10 Mbit/s and 500 us needs"
        f" {3 * ROOM_BYTES} to be busy all the time with frames of 1500 bytes"
    )
    for buffers in (Buffers(credit=3 * ROOM_BYTES), Buffers(), Buffers(headroom=1)):
        assert cautions(base.changed(buffers=buffers)) == []
    assert cautions(base.changed(flow_control="pfc", buffers=Buffers(credit=1))) == []


def simulated(*words: str) -> Any:
    command = ["simulate", "ring,4", "--engine", "dor", "--vcs", "1", "--select", "low-port"]
    return CliRunner(mix_stderr=False).invoke(
        main, [*command, "--pattern", "shift:2", "--flow-control", "credits", "--json", *words]
    )


def test_the_command_counts_in_blocks_or_cells() -> None:
    done = simulated("--credit-bytes", "4608", "--duration", "1000000")
    assert done.exit_code == 0, done.stderr
    values = json.loads(done.stdout)
    assert values["deadlock"]
    assert values["flow_control"] == "credits"
    assert values["knot"] == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    hashes = {
        json.loads(simulated("--credit-bytes", "6144", "--credit-unit", unit).stdout)[
            "result_sha256"
        ]
        for unit in ("blocks", "cells:64", "cells:2048")
    }
    assert len(hashes) == 2


@pytest.mark.parametrize("unit", ["bytes", "cells", "cells:0", "cells:65537", "cells:x", "64"])
def test_other_units_are_refused_in_one_line(unit: str) -> None:
    done = simulated("--credit-unit", unit)
    assert done.exit_code == 2
    assert "write blocks (of 64 bytes), or cells:N for cells of N bytes, 1 to 65536" in done.stderr
