"""Rules for frames of switches: left out of a proof only if no frame of a host can meet them."""

from __future__ import annotations

import pytest

from knotless.controller.probes.frames import TO_NEIGHBOUR, probe_rules
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.rules import FabricRules, Field, Output, Rule, SwitchRules
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.unmet_rules import without_unmet_rules

PLAN = make_plan(load("ring,4"), "updown")
RULES = compile_rules(PLAN)


def with_rules(*more: Rule) -> FabricRules:
    """Return the rules of a ring, with more in each switch."""
    return {
        name: SwitchRules(
            tuple(sorted((*held.rules, *more), key=lambda rule: rule.order)), held.groups
        )
        for name, held in RULES.items()
    }


def test_rules_for_probes_are_met_by_no_frame_of_a_host() -> None:
    left, count = without_unmet_rules(PLAN.fabric, with_rules(*probe_rules([2, 3], [])))
    assert count == 4 * 4
    assert {name: held.rules for name, held in left.items()} == {
        name: held.rules for name, held in RULES.items()
    }


@pytest.mark.parametrize(
    "more",
    [
        # From a port of a host; and to an address that hosts may send to.
        [*probe_rules([1], [])],
        [
            Rule(
                0,
                9,
                (Field("eth_dst", 0x0200_0000_0301), Field("eth_type", 1), Field("in_port", 2)),
            )
        ],
        # A host may send with the EtherType that an earlier rule lets in.
        [
            *probe_rules([2], []),
            Rule(
                *(0, 999, (Field("eth_dst", TO_NEIGHBOUR), Field("eth_type", 0x88B5))),
                (Output(2),),
            ),
        ],
    ],
)
def test_others_stay(more: list[Rule]) -> None:
    rules = with_rules(*more)
    left, count = without_unmet_rules(PLAN.fabric, rules)
    to = {TO_NEIGHBOUR, 0x0200_0000_0301}
    for name, held in rules.items():
        kept = [rule for rule in held.rules if any(f.value in to for f in rule.match)]
        assert set(kept) <= {*left[name].rules}
    assert count in (0, 4)
