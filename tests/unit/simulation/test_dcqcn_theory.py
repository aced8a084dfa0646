"""DCQCN against its fluid model: rates and queue at the fixed point.

The model is that of Zhu et al., Congestion Control for Large-Scale RDMA Deployments (SIGCOMM 2015),
section 5, and ECN or Delay (CoNEXT 2016), section 3: with N equal flows on a line of C packets a
second, probability p of a mark, R = C / N, and tau, tau', T, B, F and R_AI as usual,

    alpha = 1 - (1 - p)^(tau' R)
    dR_T/dt = -(R_T - R) / tau (1 - (1 - p)^(tau R)) + R_AI R (c + e)
    dR_C/dt = -R alpha / (2 tau) (1 - (1 - p)^(tau R)) + (R_T - R) / 2 R (b + d)

    b = p / ((1 - p)^-B - 1)        c = b (1 - p)^(F B)
    d = p / ((1 - p)^-(T R) - 1)    e = d (1 - p)^(F T R)

Both derivatives are 0 where alpha a^2 = tau^2 R_AI R (b + d) (c + e), a = 1 - (1 - p)^(tau R). The
left side grows with p, the right side falls: there is one solution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from knotless.base.switch_settings import SwitchFile
from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, Load, Scenario
from knotless.simulation.run import prepare
from knotless.simulation.transport import Dcqcn, Transport
from knotless.topologies import load
from knotless.traffic.patterns.pattern import pattern_of

PACKET_BYTES, WIRE_BYTES, FRAME_BYTES = 1500, 1538, 1518
PS_PER_US = 1_000_000


@dataclass(frozen=True)
class Case:
    """So many flows into a line, and how its queue marks."""

    flows: int
    rate_mbps: float
    kmin_bytes: int
    kmax_bytes: int
    pmax: float


def probability(case: Case, dcqcn: Dcqcn) -> float:
    """Return the probability of a mark at the fixed point, by bisection."""
    scale = case.rate_mbps / 40_000
    packet_bits = 8 * WIRE_BYTES
    rate = case.rate_mbps * 1e6 / packet_bits / case.flows
    additive = 40e6 * scale / packet_bits
    byte_counter = 10e6 * scale / WIRE_BYTES
    tau, tau_alpha, timer = dcqcn.cnp_us * 1e-6, dcqcn.alpha_us * 1e-6, dcqcn.timer_us * 1e-6

    def excess(p: float) -> float:
        def power(exponent: float) -> float:
            return math.exp(min(exponent * math.log1p(-p), 600.0))

        b = p / (power(-byte_counter) - 1)
        d = p / (power(-timer * rate) - 1)
        c = b * power(dcqcn.steps * byte_counter)
        e = d * power(dcqcn.steps * timer * rate)
        a, alpha = 1 - power(tau * rate), 1 - power(tau_alpha * rate)
        return alpha * a * a - tau * tau * additive * rate * (b + d) * (c + e)

    low, high = 1e-9, 0.05
    assert excess(low) < 0 < excess(high)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return low


def queue_bytes(case: Case, dcqcn: Dcqcn) -> float:
    """Return the length of the queue at the fixed point."""
    share = probability(case, dcqcn) / case.pmax
    assert share < 1, "beyond Kmax each packet is marked, and there is no fixed point"
    return case.kmin_bytes + share * (case.kmax_bytes - case.kmin_bytes)


def measured(
    case: Case, dcqcn: Dcqcn, *, warm_up_us: float, duration_us: float
) -> tuple[list[float], float]:
    """Return the mean rate of each flow (Mbit/s on the line), and the mean queue in bytes."""
    fabric = load(f"flat,{case.flows + 1},rate={case.rate_mbps:g},delay=1")
    ecn = {
        "priorities": [0],
        "kmin_bytes": case.kmin_bytes,
        "kmax_bytes": case.kmax_bytes,
        "pmax": case.pmax,
    }
    scenario = Scenario(
        make_plan(fabric, "updown"),
        pattern_of("sink", "to the last", [(host, case.flows) for host in range(case.flows)]),
        Load(),
        flow_control="pfc",
        buffers=Buffers(xoff=1 << 30),
        switch_settings=SwitchFile.model_validate({"ecn": [ecn]}),
        transport=Transport(control=dcqcn),
        warm_up_us=warm_up_us,
        duration_us=duration_us,
    )
    simulation, table, _, _ = prepare(scenario)
    place = table.place[f"s1:{fabric.hosts[case.flows].port}"]
    queues = []
    for at_us in np.arange(warm_up_us, duration_us, 20.0):
        queues.append(int(simulation.sample(round(at_us * PS_PER_US))[3][place].sum()))
    while simulation.run(1 << 20):
        pass
    report = simulation.report()
    rates = report.flow_bytes * 8 * PS_PER_US / report.measured_ps * WIRE_BYTES / PACKET_BYTES
    assert not report.flow_lost.any()
    return rates.tolist(), float(np.mean(queues))


CASES = [
    Case(2, 40_000, 5000, 1_000_000, 0.01),
    Case(8, 40_000, 5000, 1_000_000, 0.05),
    Case(32, 40_000, 5000, 1_000_000, 0.2),
    Case(8, 100_000, 12_500, 2_500_000, 0.05),
]
"""Marks as steep as the fixed point is on the slope: with a Pmax of 0.01 it is beyond Kmax for 32
flows."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.flows} at {case.rate_mbps}")
def test_rates_and_queue_are_those_of_the_fluid_model(case: Case) -> None:
    dcqcn = Dcqcn()
    rates, queue = measured(case, dcqcn, warm_up_us=100_000.0, duration_us=1_100_000.0)
    share = case.rate_mbps / case.flows
    assert rates == pytest.approx([share] * case.flows, rel=0.05)
    assert queue == pytest.approx(queue_bytes(case, dcqcn), rel=0.2)


def test_the_fixed_point_moves_as_the_parameters_say() -> None:
    """More flows, and faster increases, need more marks; faster lines need fewer."""
    few, many, fast = CASES[0], CASES[2], CASES[3]
    assert probability(few, Dcqcn()) < probability(many, Dcqcn()) / 10
    assert probability(fast, Dcqcn()) < probability(CASES[1], Dcqcn()) / 2
    assert probability(few, Dcqcn(timer_us=1500.0)) < probability(few, Dcqcn()) / 2
    # With the Pmax of the paper, 32 flows have none.
    with pytest.raises(AssertionError, match="there is no fixed point"):
        queue_bytes(replace(many, pmax=0.01), Dcqcn())
