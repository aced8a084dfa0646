"""The steps of changes: tiers, proofs, and every intermediate rule set walked independently."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import read_dir, write_dir
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.openflow.vlan_generations import (
    VlanGeneration,
    joined,
    rules_in,
    vlan_generation_of,
    vlan_generations_in,
    without_admission,
)
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import NO_FAILURES, parts
from knotless.verification.changes.change import Change, Installed
from knotless.verification.changes.planner import plan_change
from knotless.verification.changes.proof import ProofContext, Prover
from knotless.verification.changes.record import RECORD_FILE, described, digest, write_steps
from knotless.verification.check import check
from tests.support.random_fabrics import seeded, small_fabric
from tests.support.reference import CUT
from tests.support.reference_rules import RuleReference


def _installed(plan: Plan, flow_control: FlowControl = FlowControl.PAUSE) -> Installed:
    rules = compile_rules(plan)
    return Installed(plan.fabric, rules, flow_control, plan.host_tags(), plan.multicast)


def _change(spec: str, old: Mapping[str, Any], new: Mapping[str, Any], flow_control: str) -> Change:
    fabric = load(spec)
    return plan_change(
        _installed(make_plan(fabric, **old), FlowControl(flow_control)), make_plan(fabric, **new)
    )


ROOT_1: Mapping[str, Any] = {"request": "updown", "root": "s1"}
ROOT_3: Mapping[str, Any] = {"request": "updown", "root": "s3"}
DL: Mapping[str, Any] = {"request": "dl", "vcs": 2}


@pytest.mark.parametrize(
    ("spec", "old", "new", "flow_control", "tier"),
    [
        ("torus,4,4", ROOT_1, ROOT_1, "pause", 0),
        ("fattree,2,4,2", {"request": "fattree"}, {"request": "smodk"}, "pause", 1),
        ("ring,4", ROOT_1, ROOT_3, "none", 2),
        ("torus,4,4", ROOT_1, DL, "pfc", 2),
        ("torus,4,4", DL, {**ROOT_1, "tagging": "host"}, "pfc", 2),
        ("ring,4", ROOT_1, ROOT_3, "pfc", 2),
        ("ring,4", ROOT_1, ROOT_3, "pause", 2),
        ("torus,4,4", ROOT_1, {"request": "updown", "root": "s11"}, "pause", 3),
        ("ring,6", {**ROOT_1, "tagging": "host"}, {**ROOT_3, "tagging": "host"}, "pause", 3),
    ],
)
def test_the_first_tier_that_is_proven_is_taken(
    spec: str, old: Mapping[str, Any], new: Mapping[str, Any], flow_control: str, tier: int
) -> None:
    change = _change(spec, old, new, flow_control)
    assert change.tier == tier
    assert change.proven
    stages = sum(step.await_quiescence for step in change.steps)
    assert len(change.steps) in {0: {0}, 1: {1}, 2: {stages + 2}, 3: {stages + 1, stages + 2}}[tier]
    held = [change.before.rules, *(step.rules for step in change.steps)]
    assert all(set(rules) == set(held[0]) for rules in held)
    assert any(step.await_quiescence for step in change.steps) == (tier > 1)
    assert any(step.dropped for step in change.steps) == (tier == 3)
    if change.steps:
        last = change.steps[-1]
        verdict = check(change.before.fabric, last.rules, flow_control=flow_control, tags=last.tags)
        assert verdict.ok
        assert last.dropped == ()


@pytest.mark.parametrize(
    ("spec", "old", "new", "pairs", "pair_steps"),
    [
        ("torus,4,4", "dor", "updown", 10, 12),
        ("mesh,4,4", "dor", "updown", 0, 0),
        ("torus,4,4", "updown", "lturn", 8, 8),
        ("ring,4", "updown", "lturn", 0, 0),
    ],
)
def test_few_pairs_are_dropped_for_few_steps(
    spec: str, old: str, new: str, pairs: int, pair_steps: int
) -> None:
    """Without stages, with each pair dropped in both drains, there were 35, 21 and 47 pairs."""
    change = _change(spec, {"request": old}, {"request": new}, "pause")
    assert change.proven
    assert len({pair for step in change.steps for pair in step.dropped}) <= pairs
    assert sum(len(step.dropped) for step in change.steps) <= pair_steps
    assert change.tier == (3 if pairs else 2)
    answer: Any = described(change)
    assert answer["dropped_pairs"] == len(answer["dropped"]) == len(change.dropped)
    assert (answer["estimated_drop_s"] > 0) == bool(pairs)
    per_step = [step["dropped_pairs"] for step in answer["certificate"]["steps"]]
    assert per_step == [len(step.dropped) for step in change.steps]
    last = change.steps[-1]
    assert check(change.before.fabric, last.rules, flow_control="pause").ok


def test_a_change_of_all_switches_at_once_is_not_proven_if_it_can_deadlock() -> None:
    fabric = load("ring,4")
    old, new = (Generation(compile_rules(make_plan(fabric, **root))) for root in (ROOT_1, ROOT_3))
    proof = Prover(ProofContext(fabric, FlowControl.PAUSE)).prove([old, new])
    assert not proof.safe
    assert not proof.acyclic
    assert proof.lost > 0
    assert len(proof.mixed.outcome.witnesses) == len(proof.mixed.outcome.cycle)


def test_the_new_vlan_generation_and_its_priorities_are_free() -> None:
    fabric = load("ring,4")
    before = _installed(make_plan(fabric, **ROOT_1), FlowControl.PFC)
    change = plan_change(before, make_plan(fabric, **ROOT_3))
    after = change.steps[-1].rules
    assert vlan_generation_of(before.rules) == VlanGeneration(0, 0)
    assert vlan_generation_of(after) == VlanGeneration(1, 1)
    # The change back takes the VLAN generation that is free now.
    back = plan_change(replace(before, rules=after), make_plan(fabric, **ROOT_1))
    assert back.tier == 2
    assert vlan_generation_of(back.steps[-1].rules) == VlanGeneration(0, 0)
    # Before the old one is empty, both are in use.
    older = (Generation(before.rules), Generation(change.steps[0].rules))
    halfway = replace(before, rules=change.steps[1].rules, older_generations=older)
    third = plan_change(halfway, make_plan(fabric, **DL))
    assert third.tier == 2
    assert vlan_generation_of(third.steps[-1].rules).number == 2


def test_without_a_free_vlan_generation_switches_change_in_batches_or_all_is_stopped() -> None:
    fabric = load("ring,6")
    old, new = make_plan(fabric, **ROOT_1), make_plan(fabric, **ROOT_3)
    rules: FabricRules = compile_rules(old)
    for number in (1, 2, 3):
        rules = joined(
            rules, without_admission(rules_in(compile_rules(old), VlanGeneration(number)))
        )
    assert vlan_generations_in(rules) == {0, 1, 2, 3}
    before = replace(_installed(old), rules=rules)
    change = plan_change(before, new)
    assert change.tier == 3
    assert change.proven
    assert vlan_generation_of(change.steps[-1].rules).number == 0
    assert {len(step.dropped) for step in change.steps} == {0, len(fabric.hosts)}
    every_pair = len(fabric.hosts) * len(fabric.hosts)  # to each other host, and to all
    assert described(change)["dropped_pairs"] == every_pair


def test_what_can_deadlock_by_itself_is_refused() -> None:
    fabric = load("ring,4")
    bad, good = make_plan(fabric, "minimal"), make_plan(fabric, **ROOT_1)
    with pytest.raises(PlanError, match="the new plan CAN DEADLOCK under PAUSE: s1:"):
        plan_change(_installed(good), bad)
    with pytest.raises(PlanError, match="what is installed CAN DEADLOCK under PAUSE: s1:"):
        plan_change(_installed(bad), good)


def test_a_cut_path_may_lose_packets_but_no_other() -> None:
    whole = load("ring,6,hosts=2")
    cut = replace(whole, links=whole.links[1:])
    before = replace(_installed(make_plan(whole, **ROOT_1)), fabric=cut)
    broken = check(cut, before.rules, flow_control="pause").undelivered
    assert broken > 0
    change = plan_change(before, make_plan(cut, **ROOT_1))
    assert change.proven
    last = change.steps[-1].proof.after.outcome
    assert (last.undelivered, last.broadcasts_undelivered) == (0, 0)
    for step in change.steps:
        assert step.proof.mixed.outcome.undelivered <= broken + len(step.dropped)


def test_the_folders_can_be_checked_by_anyone(tmp_path: Path) -> None:
    change = _change("torus,4,4", ROOT_1, {"request": "updown", "root": "s11"}, "pause")
    write_steps(change, tmp_path)
    written = json.loads((tmp_path / RECORD_FILE).read_text())
    assert (written["tier"], written["proven"]) == (3, True)
    assert written["before"] == digest(change.before.rules)
    for number, step in enumerate(written["steps"], 1):
        fabric, rules = read_dir(tmp_path / str(number))
        assert digest(rules) == step["sha256"]
        verdict = check(fabric, rules, flow_control="pause")
        assert verdict.acyclic == step["acyclic"] == True  # noqa: E712
        assert verdict.undelivered == step["undelivered"] <= step["stopped_pairs"]
    RuleReference(tmp_path / str(len(change.steps))).all_pairs()


ENGINES = ("updown", "updown", "lturn", "rturn", "dl", "lash", "prefix", "sbp", "dfsssp")


def _plan(
    fabric: Fabric, rng: random.Random, tagging: Sequence[str] = ("switch", "switch", "host")
) -> Plan:
    engine = rng.choice(ENGINES)
    root = rng.choice(fabric.switches).name if engine == "updown" else None
    return make_plan(fabric, engine, root=root, tagging=rng.choice(tagging))


def _good_under_pause(plan: Plan) -> bool:
    rules = compile_rules(plan)
    return check(plan.fabric, rules, flow_control="pause", tags=plan.host_tags()).ok


def _walk(change: Change, folder: Path) -> None:
    """Walk every rule set, and every mixture of rule sets between two drains."""
    write_steps(change, folder)
    flow_control, first = change.before.flow_control, 0
    for number, step in enumerate(change.steps, 1):
        dropped = set(step.dropped)
        for generations in ([number], list(range(first, number + 1))):
            reference = RuleReference(*(folder / str(rule_set) for rule_set in generations))
            for pair in reference.pairs():
                fates = reference.fates(*pair)
                assert fates <= {(pair[1],), ()}, (pair, fates)
                admitted = all(
                    pair not in change.steps[rule_set - 1].dropped
                    for rule_set in generations
                    if rule_set > 0
                )
                assert () not in fates or not admitted, pair
            for host in reference.hosts.values():
                others = tuple(sorted(h["name"] for h in reference.hosts.values() if h is not host))
                fates = reference.fates(host["name"], "all")
                assert fates <= {others, ()}
                assert () not in fates or any(
                    (host["name"], "all") in s.dropped for s in change.steps
                )
            assert not reference.has_cycle(flow_control)
        assert bool(dropped) <= (change.tier == 3)
        if step.await_quiescence:
            first = number


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(5))
def test_a_link_is_cut_during_a_change(block: int, tmp_path: Path) -> None:
    """The next change counts the packets of the steps that were not drained."""
    proven = 0
    for seed, rng in seeded(range(block * 60, block * 60 + 60)):
        fabric = small_fabric(rng)
        old, new = _plan(fabric, rng), _plan(fabric, rng)
        before = _installed(old, FlowControl.PFC)
        change = plan_change(before, new)
        without = rng.randrange(len(fabric.links))
        cut = replace(fabric, links=fabric.links[:without] + fabric.links[without + 1 :])
        if change.tier < 2 or set(parts(cut, NO_FAILURES)) != {0}:
            continue
        held = [Generation(before.rules, before.tags)]
        for step in change.steps[: rng.randint(1, 2)]:
            held.append(Generation(step.rules, step.tags))
        halfway = replace(
            before,
            fabric=cut,
            rules=held[-1].rules,
            tags=held[-1].tags,
            older_generations=tuple(held[:-1]),
        )
        repair = plan_change(halfway, _plan(cut, rng))
        assert repair.proven
        held += [Generation(step.rules, step.tags) for step in repair.steps[:1]]
        folders = [tmp_path / str(seed) / str(number) for number in range(len(held))]
        for generation, folder in zip(held, folders, strict=True):
            write_dir(cut, generation.rules, folder, tags=generation.tags)
        reference = RuleReference(*folders)
        for pair in reference.pairs():
            fates = reference.fates(*pair)
            assert fates <= {(pair[1],), (CUT,), ()}, (pair, fates)
            assert () not in fates or (CUT,) in fates, (pair, fates)
        assert not reference.has_cycle("pfc")
        proven += 1
    assert proven > 1


@pytest.mark.thin(2)
@pytest.mark.parametrize("block", range(6))
def test_every_intermediate_rule_set_is_walked(block: int, tmp_path: Path) -> None:
    tiers: set[int] = set()
    for seed, rng in seeded(range(block * 20, block * 20 + 20)):
        fabric = small_fabric(rng, most_switches=5, most_hosts=5)
        old, new = _plan(fabric, rng), _plan(fabric, rng)
        flow_control = rng.choice((FlowControl.PAUSE, FlowControl.PFC))
        before = _installed(old, flow_control)
        if flow_control == "pause" and not all(_good_under_pause(rules) for rules in (old, new)):
            with pytest.raises(PlanError, match="CAN DEADLOCK under PAUSE"):
                plan_change(before, new)
            continue
        change = plan_change(before, new)
        assert change.proven
        _walk(change, tmp_path / str(seed))
        tiers.add(change.tier)
    assert tiers >= {0, 2}


@pytest.mark.parametrize("flow_control", ["pause", "pfc"])
def test_changes_follow_each_other(flow_control: str) -> None:
    """Each change starts from the rules that the last one left, in any VLAN generation."""
    tiers: set[int] = set()
    for _, rng in seeded(range(2000, 2030)):
        fabric = small_fabric(rng)
        plans = [_plan(fabric, rng) for _ in range(5)]
        if flow_control == "pause":
            plans = [plan for plan in plans if _good_under_pause(plan)]
        if not plans:
            continue
        installed = _installed(plans[0], FlowControl(flow_control))
        for plan in plans[1:]:
            change = plan_change(installed, plan)
            assert change.proven
            tiers.add(change.tier)
            if change.steps:
                last = change.steps[-1]
                verdict = check(fabric, last.rules, flow_control=flow_control, tags=last.tags)
                assert verdict.ok
                assert verdict.problems == []
                installed = replace(installed, rules=last.rules, tags=last.tags)
            again = plan_change(installed, plan)
            assert (again.tier, again.steps) == (0, ())
    assert tiers >= {0, 1, 2}
