"""Messages between two simulated hosts, against times computed by hand."""

from __future__ import annotations

import pytest

from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless_experiments.messages.logp import LogP
from knotless_experiments.studies.primitives.stages import STAGES, stage_times_us
from knotless_experiments.workloads.messages.simulated import SimulatedPair, wire_bytes

COSTS = LogP(send_us=3.0, latency_us=0.0, receive_us=9.5, gap_us=0.0)
ON_LINE_BYTES = 38
"""Of each frame besides its payload: preamble 8, header 14, FCS 4, gap 12 (IEEE 802.3)."""
LEAST_PAYLOAD = 46


@pytest.fixture
def pair() -> SimulatedPair:
    fabric = load("flat,2")
    return SimulatedPair(make_plan(fabric, "updown"), fabric.hosts[0], fabric.hosts[1], COSTS)


def latency_us(pair: SimulatedPair, payload: int) -> float:
    """Return L of a frame, stored and forwarded over two lines."""
    host = pair.client
    bits = 8 * (max(payload, LEAST_PAYLOAD) + ON_LINE_BYTES)
    return 2 * (host.delay_us + bits / host.rate_mbps)


@pytest.mark.parametrize(("kind", "header"), [("message", 32), ("acknowledged", 64), ("udp", 28)])
@pytest.mark.parametrize("size", [8, 1400])
def test_half_a_round_trip_is_the_overheads_and_the_frame(
    pair: SimulatedPair, kind: str, header: int, size: int
) -> None:
    told, _ = pair.exchange(kind, size, 3)
    expected = COSTS.send_us + COSTS.receive_us + latency_us(pair, size + header)
    assert told["median_us"] == pytest.approx(expected)


def test_a_long_message_is_cut_and_streams(pair: SimulatedPair) -> None:
    assert wire_bytes("message", 10_000) == 10_000 + 7 * 32
    told, _ = pair.exchange("message", 1_000_000, 2, "rate")
    line = pair.client.rate_mbps * (1500 - 32) / (1500 + ON_LINE_BYTES)
    assert told["mbit_per_s"] == pytest.approx(line, rel=0.02)


def test_the_stages_of_a_push_add_up_to_the_push(pair: SimulatedPair) -> None:
    times = stage_times_us(*pair.exchange("stages", 64, 1))
    whole, _ = pair.exchange("push", 64, 1)
    assert len(times) == len(STAGES)
    assert times == sorted(times)
    assert times[-1] == pytest.approx(whole["median_us"])
    # The frame is under way between 'given to the kernel' and 'taken from the kernel'.
    assert times[4] - times[3] == pytest.approx(latency_us(pair, 64 + 30 + 64))


def test_a_pull_brings_its_bytes_back(pair: SimulatedPair) -> None:
    push, _ = pair.exchange("push", 1000, 1)
    pull, _ = pair.exchange("pull", 1000, 1)
    assert pull["median_us"] == pytest.approx(push["median_us"], rel=0.02)
