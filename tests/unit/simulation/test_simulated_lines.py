"""Loss and jitter of lines in simulations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Result, Scenario, simulate
from knotless.topologies import load
from knotless.topologies.fabric import Fabric

RING = load("ring,4")


def lossy(share: float, jitter_us: float = 0.0) -> Fabric:
    first, *others = RING.links
    return replace(RING, links=(replace(first, loss=share, jitter_us=jitter_us), *others))


def run(fabric: Fabric, **more: Any) -> Result:
    more = {"duration_us": 20e6, **more}
    return simulate(Scenario(make_plan(fabric, "prefix"), "shift:1", Load(), **more))


def drops(result: Result) -> dict[str, int]:
    return {cause: count for cause, count in result.summary()["drops"].items() if count}


def test_one_percent_is_lost_on_the_line_that_loses_it_and_nowhere_else() -> None:
    result = run(lossy(0.01))
    place = result.channels.place
    link = RING.links[0]
    numbers = [place[f"{link.a}:{link.a_port}"], place[f"{link.b}:{link.b_port}"]]
    sent = sum(int(result.report.channel_tx_frames[number]) for number in numbers)
    lost = drops(result).pop("loss")
    assert drops(result) == {"loss": lost}
    assert result.lost_frames == lost
    assert sent > 10_000
    assert abs(lost - 0.01 * sent) < 3 * math.sqrt(sent * 0.01 * 0.99)
    assert f"loss {lost}" in result.verdict


def test_a_seed_loses_the_same_frames() -> None:
    first, again, other = (run(lossy(0.01), seed=seed) for seed in (1, 1, 2))
    assert first.result_sha256 == again.result_sha256 != other.result_sha256
    assert first.result_sha256 != run(RING).result_sha256


def test_jitter_loses_nothing_and_changes_latencies() -> None:
    still, late = run(RING), run(lossy(0.0, 2000.0))
    assert late.lost_frames == 0
    assert not drops(late)
    assert late.report.latency.max_ps > still.report.latency.max_ps + 1_000_000_000
    # The headroom holds what the jitter delays.
    number = late.channels.place[f"{RING.links[0].a}:{RING.links[0].a_port}"]
    assert late.channels.headroom_bytes[number] >= still.channels.headroom_bytes[number]


def test_a_line_that_loses_everything_delivers_nothing() -> None:
    result = run(lossy(1.0))
    assert float(result.flows_mbps.min()) == 0.0
    assert drops(result) == {"loss": result.lost_frames}


def test_lines_of_a_hub_lose_nothing_at_random() -> None:
    hub = load("hub,3")
    noisy = replace(hub, hosts=(replace(hub.hosts[0], loss=0.1), *hub.hosts[1:]))
    with pytest.raises((KnotlessError, ValueError), match="have neither loss nor jitter"):
        simulate(Scenario(make_plan(noisy, "updown"), "shift:1", Load(), duration_us=1e5))
