"""Theoretical figures of flows and messages, against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from knotless.base.errors import KnotlessError
from knotless.routing.request import PlanRequest
from knotless.traffic import theory
from knotless.traffic.contention import Lines
from knotless.traffic.fairness import fair_rates
from knotless.traffic.flows import Line, exchange_us, fair_mbps, flows_of, path_us
from knotless.traffic.patterns import pattern_named
from knotless_experiments.framework.routed import Routed, with_options
from knotless_experiments.messages.messenger import pieces


def test_a_message_is_full_datagrams_and_a_rest() -> None:
    assert theory.message_packets(0) == [28]
    assert theory.message_packets(1472) == [1500]
    assert theory.message_packets(1792) == [1500, 320 + 28]
    assert pieces(1792) == [1472, 320]
    assert pieces(2944) == [1472, 1472]


def test_a_rest_that_cannot_carry_its_head_is_refused() -> None:
    with pytest.raises(ValueError, match="needs 13 bytes, not 1"):
        pieces(1473)


def test_frames_follow_each_other_through_stores_and_forwards() -> None:
    line = Line(rate_mbps=10.0, delay_us=1000.0)
    # Untagged 1538 bytes of line at both ends, 4 more inside; the second frame waits behind.
    first, inner, second = 1538 * 0.8, 1542 * 0.8, (348 + 18 + 20) * 0.8
    assert path_us([line, line], [1500]) == pytest.approx(2 * first + 2000)
    assert path_us([line, line, line], [1500]) == pytest.approx(2 * first + inner + 3000)
    assert path_us([line, line, line], [1500, 348]) == pytest.approx(
        2 * first + inner + 3000 + second
    )
    assert path_us([line] * 3, [1500], tagged=False) == pytest.approx(3 * first + 3000)


def test_an_exchange_is_the_message_there_and_the_smallest_frame_back() -> None:
    plan = Routed("mesh,2,rate=10,delay=100", PlanRequest(engine="dor")).plan
    (flow,) = flows_of(plan, [("h1", "h2")])
    there = 2 * 1538 * 0.8 + 1542 * 0.8 + 300
    back = 3 * 84 * 0.8 + 300
    assert exchange_us(plan, flow, 1472) == pytest.approx(there + back)


def test_fair_goodputs_are_the_planners_fair_rates_less_headers() -> None:
    routed = Routed("mesh,4,4,rate=10")
    fabric, names = routed.fabric, [host.name for host in routed.fabric.hosts]
    pairs = pattern_named("transpose").flows(fabric)
    flows = flows_of(routed.plan, [(names[a], names[b]) for a, b in pairs])
    lines = Lines(routed.plan)
    rates = fair_rates(lines.channels_of(np.array(pairs, dtype=np.int32)), lines.rates_mbps())
    goodput = fair_mbps(routed.plan, flows, "udp")
    assert goodput == pytest.approx(list(rates * 1472 / 1542), rel=1e-6)
    assert sum(fair_mbps(routed.plan, flows, "tcp")) < sum(goodput)


def test_engines_may_name_virtual_channels() -> None:
    assert PlanRequest.from_name("dl:2") == PlanRequest(engine="dl", vcs=2)
    assert PlanRequest.from_name("sbp") == PlanRequest(engine="sbp")
    for text in ("dl:", "dl:0", "dl:9", "dl:two"):
        with pytest.raises(KnotlessError, match="NAME:N"):
            PlanRequest.from_name(text)


def test_a_spec_keeps_its_own_options() -> None:
    assert with_options("mesh,4,4,rate=3", rate=5, delay=10) == "mesh,4,4,rate=3,delay=10"
    assert with_options("fabrics/mine.json", rate=5) == "fabrics/mine.json"


def test_names_leave_out_rate_and_delay() -> None:
    routed = Routed("torus,4,4,hosts=2,rate=3,delay=7", PlanRequest(engine="dor", vcs=2))
    assert (routed.name, routed.routes) == ("torus,4,4,hosts=2", "dor, 2 VCs")
    assert routed.plan.flow_control == "pfc"
