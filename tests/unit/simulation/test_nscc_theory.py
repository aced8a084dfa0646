"""NSCC against what its rules say: rates, and the queueing delay, of flows that share a line.

N flows share a line of rate C. Without queues a round trip takes R, and the target of the queueing
delay is T. Packets have M bytes on the line.

**Where all packets are marked from a delay of T on**, and before, windows change only by what is
added in each round trip, ``eta = 0.15 a M`` with ``a = C R / (100 Gbit/s 12 us)``, and by decreases
above the target, once in a round trip, by ``gamma (D - T) / D`` of the window W, with the mean
delay D. Both are equal where ``W gamma (D - T) / D = eta`` with ``W = C (R + D) / N``: a little
above the target. Increases are equal for all flows and decreases are in proportion, so rates become
equal.

**Without marks** nothing decreases a window: all are the largest, 1.5 C R, and the delay is
``(1.5 N - 1) R``. **Marks that begin above the target** leave the delay where they begin: until
then, windows grow. **With more flows than packets in** ``C (R + T)``, each has a window of one
packet, the least, and the delay is ``N M / C - R``, above the target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from knotless.base.switch_settings import SwitchFile
from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, Load, Scenario
from knotless.simulation.run import prepare
from knotless.simulation.transport import Nscc, Transport
from knotless.topologies import load
from knotless.traffic.patterns.pattern import pattern_of

PACKET_BYTES, FRAME_BYTES, LINE_BYTES = 1500, 1518, 1538
ANSWER_BYTES = 84
PS_PER_US = 1_000_000
RATE_MBPS = 100_000.0
PUBLISHED_RTT_US = 12.0


@dataclass(frozen=True)
class Measured:
    """Mean rates of the flows (Mbit/s on the line), and the mean queueing delay."""

    rates_mbps: list[float]
    delay_us: float


def line_us(bytes_: float) -> float:
    """Return the time of so many bytes on the line."""
    return bytes_ * 8 / RATE_MBPS


def measured(
    flows: int, rtt_us: float, marks_from_us: float | None, *, warm_up_us: float, duration_us: float
) -> Measured:
    """Simulate flows into one line, whose queue marks all packets from a delay on, or none."""
    # There and back: two lines each, and the times of a packet and its answer on them.
    delay_us = (rtt_us - 2 * line_us(LINE_BYTES) - 2 * line_us(ANSWER_BYTES)) / 4
    fabric = load(f"flat,{flows + 1},rate={RATE_MBPS:g},delay={delay_us:.6f}")
    settings = None
    if marks_from_us is not None:
        kmin = round(marks_from_us * RATE_MBPS / 8 * FRAME_BYTES / LINE_BYTES)
        ecn = {"priorities": [0], "kmin_bytes": kmin, "kmax_bytes": kmin + 1}
        settings = SwitchFile.model_validate({"ecn": [ecn]})
    scenario = Scenario(
        make_plan(fabric, "updown"),
        pattern_of("sink", "to the last", [(host, flows) for host in range(flows)]),
        Load(),
        flow_control="pfc",
        buffers=Buffers(xoff=1 << 30),
        switch_settings=settings,
        transport=Transport(control=Nscc()),
        packet_bytes=PACKET_BYTES,
        warm_up_us=warm_up_us,
        duration_us=duration_us,
    )
    simulation, table, _, _ = prepare(scenario)
    place = table.place[f"s1:{fabric.hosts[flows].port}"]
    queues = []
    for at_us in np.arange(warm_up_us, duration_us, 7.0):
        queues.append(int(simulation.sample(round(at_us * PS_PER_US))[3][place].sum()))
    while simulation.run(1 << 20):
        pass
    report = simulation.report()
    assert not report.flow_lost.any()
    assert not report.flow_retransmitted.any()
    rates = report.flow_bytes * 8 * PS_PER_US / report.measured_ps * LINE_BYTES / PACKET_BYTES
    return Measured(rates.tolist(), line_us(float(np.mean(queues)) * LINE_BYTES / FRAME_BYTES))


def balance_us(flows: int, rtt_us: float, target_us: float) -> float:
    """Return the mean delay at which increases and decreases are equal, by bisection."""
    nscc = Nscc()
    eta = nscc.constant * rtt_us / PUBLISHED_RTT_US * LINE_BYTES
    low, high = target_us, 10 * target_us
    for _ in range(100):
        middle = (low + high) / 2
        window = RATE_MBPS / 8 * (rtt_us + middle) / flows
        is_above = window * nscc.gamma * (middle - target_us) / middle > eta
        low, high = (low, middle) if is_above else (middle, high)
    return low


@pytest.mark.parametrize("flows", [2, 8, 32])
def test_rates_are_equal_and_the_delay_is_near_its_target(flows: int) -> None:
    rtt_us = 12.0
    found = measured(flows, rtt_us, 0.8 * rtt_us, warm_up_us=50_000.0, duration_us=250_000.0)
    share = RATE_MBPS / flows
    assert found.rates_mbps == pytest.approx([share] * flows, rel=0.05)
    assert sum(found.rates_mbps) > 0.99 * RATE_MBPS
    assert found.delay_us == pytest.approx(balance_us(flows, rtt_us, rtt_us), rel=0.02)
    assert balance_us(flows, rtt_us, rtt_us) < 1.04 * rtt_us


def test_without_marks_all_windows_are_the_largest() -> None:
    for flows in (2, 8):
        found = measured(flows, 12.0, None, warm_up_us=5_000.0, duration_us=15_000.0)
        assert found.delay_us == pytest.approx((1.5 * flows - 1) * 12.0, rel=0.02)


def test_marks_from_a_delay_above_the_target_keep_it_there() -> None:
    """Windows grow by fair increases as long as packets above the target are not marked."""
    rtt_us = 12.0
    found = measured(8, rtt_us, 2 * rtt_us, warm_up_us=50_000.0, duration_us=100_000.0)
    assert found.delay_us == pytest.approx(2 * rtt_us, rel=0.05)


def test_more_flows_than_packets_on_the_line_keep_a_packet_each() -> None:
    flows, rtt_us = 96, 3.0
    least_us = line_us(flows * LINE_BYTES) - rtt_us
    found = measured(flows, rtt_us, 0.8 * rtt_us, warm_up_us=20_000.0, duration_us=40_000.0)
    assert least_us > 2 * rtt_us
    assert found.delay_us == pytest.approx(least_us, rel=0.02)
    assert found.rates_mbps == pytest.approx([RATE_MBPS / flows] * flows, rel=0.05)
