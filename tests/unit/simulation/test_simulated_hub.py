"""Repeater hubs: simulated, and refused by commands that need switches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.emulation.wiring import wire
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.simulation import LinkChange, Load, Scenario, simulate
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import from_text, to_text

FRAME_BITS = 8 * (8 + 18 + 1500)
GAP_BITS = 96


def scenario(spec: str, load_: Load, **more: Any) -> Scenario:
    return Scenario(make_plan(load(spec), "updown"), "shift:1", load_, **more)


def test_hosts_share_the_line_and_collide() -> None:
    result = simulate(scenario("hub,4", Load(), duration_us=1e6))
    whole_mbps = 10 * 8 * 1500 / (FRAME_BITS + GAP_BITS)
    # What switches carry for each host, the hub carries for all.
    assert 0.9 * whole_mbps < result.throughput_mbps < whole_mbps
    assert result.summary()["collisions"] > 100
    assert result.lost_frames == result.summary()["given_up"]
    switched = simulate(scenario("flat,4,delay=0.5", Load(), duration_us=1e6))
    assert switched.throughput_mbps == pytest.approx(4 * whole_mbps, rel=0.01)
    assert switched.summary()["collisions"] == 0


def test_messages_are_acknowledged_over_a_hub() -> None:
    result = simulate(scenario("hub,2", Load("acknowledged", message_bytes=1500, messages=50)))
    assert result.report.flow_messages.tolist() == [50, 50]
    assert result.summary()["messages_under_way"] == 0


def test_one_seed_gives_one_result() -> None:
    base = scenario("hub,5,rate=100", Load("poisson", 0.15), duration_us=50_000)
    first, again, other = (simulate(base.changed(seed=seed)) for seed in (1, 1, 2))
    assert first.result_sha256 == again.result_sha256 != other.result_sha256


def test_a_hub_survives_a_file() -> None:
    fabric = load("hub,3")
    assert json.loads(to_text(fabric))["switches"] == [{"name": "s1", "dpid": 1, "hub": True}]
    assert from_text(to_text(fabric)) == fabric
    assert "hub" not in to_text(load("flat,3"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hub,2,rate=1000", "at most 100 Mbit/s, not 1000"),
        ("hub,2,delay=13", "the round-trip time between hosts, 52 us"),
        ("hub,0", "a size must be at least 1"),
        ("hub,2,hosts=2", "has no option 'hosts'"),
    ],
)
def test_invalid_hubs_are_refused(spec: str, message: str) -> None:
    with pytest.raises(KnotlessError, match=message):
        load(spec)


def test_a_hub_is_linked_to_no_switch() -> None:
    values = json.loads(to_text(load("mesh,2,1")))
    values["switches"][0]["hub"] = True
    with pytest.raises(KnotlessError, match="s1: a hub connects only hosts"):
        from_text(json.dumps(values))
    values["switches"][0]["hub"] = "yes"
    with pytest.raises(KnotlessError, match="hub must be true or false"):
        from_text(json.dumps(values))


def compiled(fabric: Fabric) -> object:
    return compile_rules(make_plan(fabric, "updown"))


@pytest.mark.parametrize(("use", "what"), [(compiled, "given rules"), (wire, "emulated")])
def test_what_needs_switches_refuses_hubs(use: object, what: str) -> None:
    assert callable(use)
    with pytest.raises(KnotlessError, match=f"hub, which cannot be {what}") as refused:
        use(load("hub,3"))
    assert "\n" not in str(refused.value)


def test_its_links_cannot_be_cut() -> None:
    changes = (LinkChange(1, "h1", up=False),)
    cut = scenario("hub,3", Load(), duration_us=10.0, link_changes=changes)
    with pytest.raises(KnotlessError, match="links of a hub cannot be cut"):
        simulate(cut)
