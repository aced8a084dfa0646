"""Wire bytes and fair shares, against values computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from knotless.base.flow_control import FlowControl
from knotless.routing.vlans.assignment import TAGGINGS
from knotless.traffic import theory
from knotless.traffic.flows import paths_on_channels
from knotless_experiments.studies.deadlock import matrix, scenario, transfers
from knotless_experiments.workloads import open_loop


def test_a_full_datagram_takes_1542_bytes_of_line_between_switches() -> None:
    assert theory.wire_bytes("udp", 1472, tagged=True) == 14 + 4 + 20 + 8 + 1472 + 4 + 8 + 12
    assert theory.wire_bytes("udp", 1472, tagged=False) == 1538


def test_a_tiny_frame_takes_the_line_time_of_the_smallest() -> None:
    assert theory.wire_bytes("udp", 1, tagged=False) == 64 + 20


def test_an_acknowledgement_is_charged_half_a_segment_each() -> None:
    assert theory.load_per_payload("tcp", tagged=True, ack=True) == 94 / (2 * 1448)
    assert theory.load_per_payload("udp", tagged=True, ack=True) == 0


def planned_as(routes: str, **case: Any) -> scenario.Scenario:
    return scenario.for_case(matrix.Case(routes, FlowControl.PAUSE, "udp", **case))


@pytest.mark.parametrize("routes", matrix.ROUTES)
def test_every_routes_of_the_ring_give_four_equal_flows(routes: str) -> None:
    planned = planned_as(routes)
    assert planned.theory_mbps("udp") == pytest.approx([10 * 1472 / 1542 / 2] * 4)
    assert [str(flow) for flow in planned.flows] == ["h1>h3", "h2>h4", "h3>h1", "h4>h2"]
    assert all(len(flow.channels) == 3 for flow in planned.flows)


@pytest.mark.parametrize("pattern", transfers.EVERY, ids=lambda each: each.name)
@pytest.mark.parametrize("tagging", TAGGINGS)
def test_pairs_of_patterns_differ_in_nothing_but_their_cycle(
    pattern: transfers.Transfers, tagging: str
) -> None:
    assert set(pattern.by_letter.values()) == {"cyclic", "acyclic"}
    shares = []
    for routes in pattern.routes:
        planned = planned_as(routes, pattern=pattern.name, tagging=tagging)
        most = max(paths_on_channels(planned.flows).values())
        assert most == transfers.MAX_PATHS_ON_A_CHANNEL
        shares.append(sorted(planned.theory_mbps("udp")))
        for protocol in matrix.PROTOCOLS:
            assert bool(planned.predicted_cycle(protocol, FlowControl.PAUSE)) == (
                routes != "acyclic"
            )
    assert all(share == pytest.approx(shares[0]) for share in shares)


def test_tcp_shares_leave_room_for_acknowledgements() -> None:
    # On the cyclic ring each channel has two flows' segments and two flows' ACKs.
    shares = planned_as("cyclic").theory_mbps("tcp")
    assert shares == pytest.approx([10 * 1448 / (2 * 1518 + 2 * 24 + 94)] * 4, rel=0.01)
    assert shares == pytest.approx([10 / (2 * (1542 + 47) / 1448)] * 4)


def test_the_static_check_distinguishes_the_routes() -> None:
    ring = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert planned_as("cyclic").predicted_cycle("udp", FlowControl.PAUSE) == ring
    assert planned_as("cyclic").predicted_cycle("udp", FlowControl.PFC) == ring
    assert planned_as("acyclic").predicted_cycle("udp", FlowControl.PAUSE) == []
    assert planned_as("dateline").predicted_cycle("udp", FlowControl.PFC) == []
    # 802.3x stops all priorities at once, so there two virtual channels would not help.
    assert planned_as("dateline").predicted_cycle("udp", FlowControl.PAUSE) == ring


def test_only_a_knot_of_waiting_channels_is_as_predicted() -> None:
    cyclic, ring = planned_as("cyclic"), ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert cyclic.as_predicted(ring, "udp", FlowControl.PAUSE)
    assert cyclic.as_predicted([], "udp", FlowControl.PAUSE)
    assert not cyclic.as_predicted(ring[::-1], "udp", FlowControl.PAUSE)
    assert not planned_as("acyclic").as_predicted(ring, "udp", FlowControl.PAUSE)


def test_senders_whose_share_is_small_send_for_longer() -> None:
    """50 frames at 0.3 Mbit/s take two seconds, and twice that may be needed."""
    assert open_loop.sending_s(2.0, "udp", 5.0) == 7
    assert open_loop.sending_s(2.0, "udp", 0.3) == 10
