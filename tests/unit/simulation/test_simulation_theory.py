"""The simulator against theory: max-min shares that are not equal, and headroom to the byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from knotless._core.simulator import headroom_bytes
from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, Scenario, simulate
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.traffic.flows import fair_mbps, flows_of
from knotless.traffic.patterns.pattern import Flows, Pattern

PACKET_BYTES, UDP_BYTES = 1500, 1472
FRAME_BYTES, LINE_BYTES = 1518, 1538


def pattern_of(pairs: list[tuple[int, int]]) -> Pattern:
    def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
        del fabric, seed
        yield np.array(pairs, dtype=np.int32)

    return Pattern("pairs", "these pairs", make)


@pytest.mark.parametrize("flow_control", ["pause", "pfc"])
def test_unequal_bottlenecks_give_max_min_shares(flow_control: str) -> None:
    """Three flows share a link; a fourth gets what one of them leaves on its last line."""
    plan = make_plan(load("mesh,3,1,hosts=3,rate=1000,delay=1"), "dor")
    pairs = [(0, 3), (1, 4), (2, 5), (6, 5)]
    names = [host.name for host in plan.fabric.hosts]
    flows = flows_of(plan, [(names[a], names[b]) for a, b in pairs])
    shares_mbps = fair_mbps(plan, flows, "udp")
    assert shares_mbps[3] > 1.9 * shares_mbps[2] > 1.8 * shares_mbps[0]
    result = simulate(
        Scenario(
            plan,
            pattern_of(pairs),
            flow_control=flow_control,
            warm_up_us=20_000,
            duration_us=220_000,
        )
    )
    assert result.lost_frames == 0
    goodput_mbps = result.flows_mbps * UDP_BYTES / PACKET_BYTES
    assert goodput_mbps.tolist() == pytest.approx(shares_mbps, rel=0.01)


@pytest.mark.parametrize("flow_control", ["pause", "pfc"])
@pytest.mark.parametrize(
    ("rate_mbps", "delay_us"), [(1000, 0), (1000, 0.5), (1000, 5), (10_000, 1), (10_000, 50)]
)
def test_one_byte_less_than_the_worst_case_needs_loses_a_frame(
    flow_control: str, rate_mbps: float, delay_us: float, tmp_path: Path
) -> None:
    """The sender is paused at the worst moment, and the receiver forwards nothing meanwhile.

    If the ingress buffer occupancy is exactly XOFF, one more frame is accepted and exceeds it. The
    PAUSE frame and the last frame sent before it takes effect need one delay each. A frame whose
    transmission starts just before the end of these two delays arrives as well.
    """
    fabric = load(f"flat,2,rate={rate_mbps},delay={delay_us}")
    # The receiver's line is so slow that its queue holds everything that arrives.
    slow = replace(fabric.hosts[0], rate_mbps=0.001)
    plan = make_plan(replace(fabric, hosts=(slow, fabric.hosts[1])), "updown")
    trace = tmp_path / "trace.csv"
    trace.write_text("time_us,source,destination,bytes\n0,h2,h1,30000000\n")
    xoff = 100 * FRAME_BYTES
    base = Scenario(
        plan,
        "trace",
        trace=str(trace),
        flow_control=flow_control,
        duration_us=400 * LINE_BYTES * 8 / rate_mbps + 10 * delay_us,
    )

    def lost(headroom: int) -> int:
        limits = Buffers(xoff=xoff, headroom=headroom)
        return int(simulate(base.changed(buffers=limits)).summary()["drops"]["headroom"])

    line_us = LINE_BYTES * 8 / rate_mbps
    frames = int(2 * delay_us / line_us) + 2
    assert lost(frames * FRAME_BYTES) == 0
    assert lost(frames * FRAME_BYTES - 1) > 0
    # The formula counts bytes on the wire. It exceeds this number by the gaps, which are not
    # buffered, and by the partial frame that two delays contain.
    formula = headroom_bytes(round(rate_mbps * 1e6), round(delay_us * 1e6), FRAME_BYTES)
    part = round((2 * delay_us / line_us) % 1 * LINE_BYTES)
    gaps = frames * (LINE_BYTES - FRAME_BYTES)
    assert formula - frames * FRAME_BYTES == pytest.approx(gaps + part, abs=2)
