"""States from a plan and from rules are simulated in the same way."""

from __future__ import annotations

from typing import Any

import pytest

from knotless._core.simulator import DROP_CAUSES
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Scenario, SimulationError, simulate
from knotless.topologies import load

LINKS = "rate=1000,delay=1"


@pytest.mark.parametrize(
    ("spec", "engine", "choices"),
    [
        ("torus,5,5", "dor", {}),
        ("mesh,3,3,hosts=2", "sbp", {"tagging": "host"}),
        ("fattree2,4", "fattree", {"tagging": "host"}),
        ("random,12,degree=4,hosts=2,seed=3", "dfsssp", {}),
        ("irregular-a", "dl", {"select": "low-port", "vlans": "tree"}),
    ],
)
def test_rules_and_the_plan_that_they_are_compiled_from_give_one_result(
    spec: str, engine: str, choices: dict[str, Any]
) -> None:
    plan = make_plan(load(f"{spec},{LINKS}"), engine, multicast={1: ["h1", "h3", "h8"]}, **choices)
    state = state_of_rules(plan.fabric, compile_rules(plan), plan.multicast, plan.host_tags())
    for pattern, senders in [("uniform", ()), ("multicast", (("h3", 1), ("h5", 1)))]:
        scenarios = [
            Scenario(
                plan,
                pattern,
                Load("poisson", 0.3),
                flow_control="pfc",
                duration_us=1_000,
                senders=senders,
                state=given,
            )
            for given in (None, state)
        ]
        of_plan, of_rules = map(simulate, scenarios)
        assert of_plan.result_sha256 == of_rules.result_sha256
        assert of_rules.report.flow_packets.sum() > 0
        assert of_rules.lost_frames == 0


def test_what_a_switch_without_rules_drops_is_lost() -> None:
    plan = make_plan(load(f"ring,4,{LINKS}"), "updown")
    rules = {
        name: switch_rules for name, switch_rules in compile_rules(plan).items() if name != "s3"
    }
    state = state_of_rules(plan.fabric, rules)
    result = simulate(Scenario(plan, "shift:2", Load("saturate"), duration_us=500, state=state))
    lost = dict(zip(result.flows, result.report.flow_lost.tolist(), strict=True))
    dropped = result.report.channel_drops[DROP_CAUSES.index("unforwarded")]
    assert lost["h3", "h1"] > 10
    assert lost["h1", "h3"] > 10
    assert {name for name, count in zip(result.channels.names, dropped, strict=True) if count} >= {
        "h3"
    }
    assert int(dropped.sum()) == result.lost_frames


def test_the_state_of_another_fabric_is_refused() -> None:
    plan, other = (make_plan(load(f"{spec},{LINKS}"), "updown") for spec in ("ring,4", "ring,5"))
    state = state_of_rules(other.fabric, compile_rules(other))
    with pytest.raises(SimulationError, match="the state is of ring,5"):
        simulate(Scenario(plan, "shift:1", duration_us=100, state=state))
