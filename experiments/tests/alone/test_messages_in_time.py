"""No message of a program arrives sooner than lines and delays allow, next to other traffic."""

from __future__ import annotations

import pytest

from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.traffic.flows import exchange_us, flows_of
from knotless_experiments.messages.exchange import Messenger
from tests.support.fabric_fixtures import Start

pytestmark = pytest.mark.realtime

PAIRS = [("h1", "h2"), ("h3", "h4"), ("h5", "h6"), ("h7", "h8")]
"""With one pair the network is idle whenever a host sends."""
BYTES, SECONDS, WARM_UP_S = 64, 0.5, 0.3


def test_no_message_is_faster_than_its_way(start: Start) -> None:
    fabric = start("flat,8,rate=10,delay=1000", PlanRequest(engine="updown"), virtual_clock=True)
    plan = make_plan(fabric.fabric, fabric.request)
    with Messenger(fabric) as messenger:
        messenger.acknowledged(PAIRS, BYTES, 0.0, WARM_UP_S)
        by_flow = messenger.acknowledged(PAIRS, BYTES, SECONDS, WARM_UP_S)
    for flow, times_us in zip(flows_of(plan, PAIRS), by_flow, strict=True):
        assert len(times_us) > 20
        # Programs measure whole microseconds.
        assert min(times_us) >= exchange_us(plan, flow, BYTES) - 2
