"""Errors where old and new rules meet, on fabrics small enough to see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from knotless.base.errors import RuleError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import Generation, state_of_generations, state_of_rules
from knotless.forwarding.openflow.rules import FabricRules, Field, Output, Rule, SwitchRules
from knotless.forwarding.openflow.vlan_generations import (
    VlanGeneration,
    joined,
    rules_in,
    without_admission,
)
from knotless.routing.graphs.dependencies import find_cycle
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, Host, Link, Switch, load
from knotless.topologies.numbering import host_ip, host_mac, mac_value
from knotless.verification.changes.change import Installed
from knotless.verification.changes.proof import ProofContext, Prover
from knotless.verification.changes.steps import Steps, add_batches
from knotless.verification.check import Verdict, check, verdict_of
from knotless.verification.dependencies import edges_of

BROADCAST = 0xFFFFFFFFFFFF

# Switches 1 to 3 form a triangle, each with a link to switch 4. A host is on port 1 of each.
HOST, NEXT, BEFORE, FOUR = 1, 2, 3, 4
CITIES = (1, 2, 3, 4)
WHEEL = Fabric(
    "wheel",
    tuple(Switch(f"s{i}", i) for i in CITIES),
    tuple(Host(f"h{i}", host_mac(i, 1), host_ip(i, 1), f"s{i}", HOST) for i in CITIES),
    (
        *(Link(f"s{i}", NEXT, f"s{i % 3 + 1}", BEFORE) for i in (1, 2, 3)),
        *(Link(f"s{i}", FOUR, "s4", i + 1) for i in (1, 2, 3)),
    ),
)
DIRECT = {(a, b): (b - a) % 3 + 1 for a in (1, 2, 3) for b in (1, 2, 3) if a != b}
DIRECT |= {(a, 4): FOUR for a in (1, 2, 3)} | {(4, b): b + 1 for b in (1, 2, 3)}


def _rules(changed: Mapping[int, int]) -> FabricRules:
    """Return rules for shortest paths, except to h4 as in {switch: port}."""
    ports = {**DIRECT, **{(i, i): HOST for i in CITIES}, **{(a, 4): p for a, p in changed.items()}}
    rules: dict[str, SwitchRules] = {}
    for switch in CITIES:
        here = [(to, port) for (tail, to), port in sorted(ports.items()) if tail == switch]
        rules[f"s{switch}"] = SwitchRules(
            tuple(
                Rule(0, 100, (Field("eth_dst", mac_value(host_mac(to, 1))),), (Output(port),))
                for to, port in here
            )
        )
    return rules


def _flooding(copies: Mapping[tuple[int, int], list[int]]) -> FabricRules:
    """Return rules for {(switch, in port): out ports of broadcasts}."""
    return {
        f"s{city}": SwitchRules(
            tuple(
                Rule(
                    0,
                    100,
                    (Field("eth_dst", BROADCAST), Field("in_port", in_port)),
                    tuple(Output(port) for port in ports),
                )
                for (switch, in_port), ports in sorted(copies.items())
                if switch == city
            )
        )
        for city in CITIES
    }


def _mixed(*generations: FabricRules, fabric: Fabric = WHEEL) -> Verdict:
    state = state_of_generations(fabric, [Generation(rules) for rules in generations])
    return verdict_of(state, "pause")


OLD = _rules({1: NEXT, 2: NEXT})
"""To h4: s1, s2, s3, s4."""
NEW = _rules({3: NEXT})
"""To h4: s3, s1, s4, and s2, s4."""


def test_a_mixture_loops() -> None:
    for rules in (OLD, NEW):
        verdict = check(WHEEL, rules, flow_control="pause")
        assert verdict.undelivered == 0
        assert verdict.acyclic
    verdict = _mixed(OLD, NEW)
    assert verdict.undelivered == 3
    for host in ("h1", "h2", "h3"):
        line = f"{host} to h4: while the rules change, the frame can go round for ever"
        assert line in verdict.problems
    assert verdict.cycle == ["s1:2/0", "s2:2/0", "s3:2/0"]
    assert {witness.destination for witness in verdict.witnesses} == {"h4"}


def test_batches_prevent_the_loop() -> None:
    """Packets that have met new rules of s3 meet no old ones of s1, if s1 changes before."""
    first = {**OLD, "s1": NEW["s1"]}
    verdict = _mixed(OLD, first, NEW)
    assert verdict.undelivered == 0
    assert verdict.acyclic
    last = {**NEW, "s1": OLD["s1"]}
    assert _mixed(OLD, last, NEW).undelivered == 3


def test_batches_are_found() -> None:
    steps = Steps(
        Prover(ProofContext(WHEEL, FlowControl.PAUSE)), Installed(WHEEL, OLD, FlowControl.PAUSE)
    )
    assert add_batches(steps, NEW, None)
    actions = [step.action for step in steps.steps]
    assert actions == ["install the new rules on s1, s2", "install the new rules on s3"]
    assert steps.steps[-1].rules == NEW
    back = Steps(
        Prover(ProofContext(WHEEL, FlowControl.PAUSE)), Installed(WHEEL, NEW, FlowControl.PAUSE)
    )
    assert add_batches(back, OLD, None)
    assert back.steps[0].action == "install the new rules on s1, s3"


def test_a_flood_arrives_twice_in_a_mixture() -> None:
    star = {(1, HOST): [NEXT, BEFORE, FOUR], (2, BEFORE): [HOST], (3, NEXT): [HOST], (4, 2): [HOST]}
    chain = {**star, (1, HOST): [NEXT, FOUR], (2, BEFORE): [HOST, NEXT], (3, BEFORE): [HOST]}
    both = {**star, (3, BEFORE): [HOST]}
    for copies in (star, chain, both):
        # Only what h1 floods is delivered: to three hosts.
        assert check(WHEEL, _flooding(copies)).broadcasts_undelivered == 12 - 3
    assert _mixed(_flooding(star), _flooding(both)).broadcasts_undelivered == 12 - 3
    for old in (star, both):
        verdict = _mixed(_flooding(old), _flooding(chain))
        assert verdict.broadcasts_undelivered == 12 - 2
        problem = "h3 does not receive broadcasts from h1 exactly once and unchanged"
        assert problem in verdict.problems


@pytest.mark.parametrize(
    ("spec", "old", "new"),
    [("ring,4", "s1", "s3"), ("ring,8,hosts=2", "s1", "s5"), ("torus,4,4", "s1", "s11")],
)
def test_two_safe_plans_can_deadlock_together(spec: str, old: str, new: str) -> None:
    fabric = load(spec)
    plans = [make_plan(fabric, "updown", root=root) for root in (old, new)]
    rules = [compile_rules(plan) for plan in plans]
    assert all(check(fabric, each, flow_control="pause").ok for each in rules)
    verdict = _mixed(*rules, fabric=fabric)
    assert not verdict.acyclic
    assert len(verdict.witnesses) == len(verdict.cycle) >= 2


def test_the_union_of_both_graphs_is_not_enough() -> None:
    """A packet that meets both rules makes a dependency that neither graph has."""
    candidates = list(_candidates())
    together = [changed for changed in candidates if not _union_has_cycle(*changed)]
    hidden = [
        (old, new) for fabric, old, new in together if not _mixed(old, new, fabric=fabric).acyclic
    ]
    # The figures of docs/decisions/route-changes.md.
    assert (len(candidates), len(together), len(hidden)) == (388, 16, 4)


def _candidates() -> Iterator[tuple[Fabric, FabricRules, FabricRules]]:
    for spec in ("ring,5", "mesh,3,2", "torus,3,3", "mesh,3,3"):
        fabric = load(spec)
        for engine in ("updown", "lturn"):
            roots = [f"s{i}" for i in range(1, len(fabric.switches) + 1)]
            rules = [compile_rules(make_plan(fabric, engine, root=root)) for root in roots]
            for old in rules:
                yield from ((fabric, old, new) for new in rules if new is not old)


def _union_has_cycle(fabric: Fabric, old: FabricRules, new: FabricRules) -> bool:
    edges = [edges_of(state_of_rules(fabric, rules)) for rules in (old, new)]
    return bool(find_cycle(np.concatenate(edges)))


def test_vlan_generations_do_not_mix() -> None:
    """Frames admitted into a VLAN generation stay there, even without the rules of the other."""
    fabric = load("torus,4,4,hosts=2")
    plan = make_plan(fabric, "dl", vcs=2)
    compiled = compile_rules(plan)
    alone = check(fabric, compiled)
    for generation in (
        VlanGeneration(1),
        VlanGeneration(3),
        VlanGeneration(2, 4),
        VlanGeneration(0, 6),
    ):
        verdict = check(fabric, rules_in(compiled, generation))
        assert verdict.ok
        assert verdict.problems == []
        assert verdict.max_channel_load == alone.max_channel_load
    with pytest.raises(RuleError, match="priorities above 0"):
        rules_in(compiled, VlanGeneration(1, 7))


def test_that_an_older_generation_stops_all_excuses_no_loss() -> None:
    """Frames that it dropped are admitted by now: what the next step loses is lost."""
    fabric = load("ring,5")
    old, new = (
        Generation(dict(compile_rules(make_plan(fabric, "updown", root=root))))
        for root in ("s1", "s3")
    )
    dropped = Generation(dict.fromkeys(old.rules, SwitchRules(())))
    prover = Prover(ProofContext(fabric, FlowControl.PAUSE))
    assert prover.prove([old, new]).lost > 0
    assert prover.prove([dropped, old, new]).lost > 0
    # Where nothing is delivered now, nothing can be lost.
    assert prover.prove([dropped, new]).lost == 0


@pytest.mark.parametrize(("lag", "failed"), [(1, 3), (2, 4)])
def test_more_is_lost_if_switches_lag_behind(lag: int, failed: int) -> None:
    """A pair is lost only by a packet that meets the last rules and then the first."""
    ring = load("ring,5")
    rules = [compile_rules(make_plan(ring, "updown", root=root)) for root in ("s1", "s2", "s4")]
    *older, last = map(Generation, rules)
    state = state_of_generations(ring, [*older, replace(last, lag=lag)])
    assert len(state.core.failed) == failed


def test_that_confirmed_rules_could_have_lagged_behind_excuses_no_loss() -> None:
    """Switches that lag behind the last rules did not lag behind those before."""
    fabric = load("ring,5")
    plan = make_plan(fabric, "updown")
    first, second = (rules_in(compile_rules(plan), VlanGeneration(n, 0)) for n in (0, 1))
    both = joined(first, without_admission(second))
    switched = joined(without_admission(first), second)
    older = [Generation(first), Generation(both), Generation(switched)]
    prover = Prover(ProofContext(fabric, FlowControl.PAUSE))
    assert prover.prove(older).lost == 0
    # If the first rules could be met after the third, frames of the second VLANs would be lost.
    assert prover.prove([*older[:2], replace(older[2], lag=2)]).lost > 0
    # So they all are when these go, whatever some switches have confirmed besides: packets of now
    # and older ones, to hosts and to all.
    assert prover.prove([*older, Generation(first, lag=2)]).lost == 2 * 2 * 5 * 4
    assert prover.prove([*older, Generation(switched, lag=2)]).lost == 0
