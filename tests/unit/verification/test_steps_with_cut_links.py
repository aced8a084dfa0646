"""Changes after a failure: no mixture sends more to a cut link than the rules before or after."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import write_dir
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.plan import Plan, make_plan
from knotless.routing.repair import repair
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import NO_FAILURES, Failures, parts, usable
from knotless.verification.changes.change import Change, Installed
from knotless.verification.changes.planner import plan_change
from knotless.verification.changes.proof import Proof, ProofContext, Prover
from tests.support.random_fabrics import seeded, small_fabric
from tests.support.reference_rules import RuleReference


def _repaired(plan: Plan, link: str) -> Plan:
    return repair(plan, Failures.from_names(plan.fabric, [link])).plan


def _without(fabric: Fabric, link: str) -> Fabric:
    return usable(fabric, Failures.from_names(fabric, [link]))


def _one_step(fabric: Fabric, old: Plan, new: Plan) -> Proof:
    generations = [Generation(compile_rules(plan)) for plan in (old, new)]
    return Prover(ProofContext(fabric, old.flow_control)).prove(generations)


def test_a_mixture_that_alone_sends_broadcasts_to_the_cut_link_loses_them() -> None:
    """Routes avoid s1-s2 when s2-s3 is cut: in one step, two broadcasts more would meet the cut."""
    plan = make_plan(load("torus,3,3"), "updown")
    old, new = (_repaired(plan, link) for link in ("s1:2-s2:3", "s2:2-s3:3"))
    fabric = _without(plan.fabric, "s2:2-s3:3")
    proof = _one_step(fabric, old, new)
    assert proof.acyclic
    assert not proof.mixed.loses
    assert proof.lost == 2
    change = plan_change(Installed(fabric, compile_rules(old), old.flow_control), new)
    assert change.proven
    assert change.tier == 2


def test_what_the_rules_before_send_to_the_cut_link_is_excused() -> None:
    """Every cut of ring,4 is still repaired in one step."""
    plan = make_plan(load("ring,4"), "dor")
    for link in plan.fabric.links:
        fabric, new = _without(plan.fabric, link.name), _repaired(plan, link.name)
        proof = _one_step(fabric, plan, new)
        assert proof.mixed.failing == proof.judge(proof.generations[:1]).failing
        assert any(proof.mixed.failing)
        assert proof.safe


def _failing(fabric: Fabric, generations: list[FabricRules], folder: Path) -> set[tuple[str, ...]]:
    folders = [folder / str(number) for number in range(len(generations))]
    for rules, directory in zip(generations, folders, strict=True):
        write_dir(fabric, rules, directory)
    reference = RuleReference(*folders)
    return {*reference.failed_pairs(), *((*pair, "all") for pair in reference.wrong_receivers()[0])}


def _assert_no_mixture_loses_more(change: Change, folder: Path) -> None:
    rules = change.before.rules
    for number, step in enumerate(change.steps):
        both = [rules, step.rules]
        mixed, old, new = (
            _failing(change.before.fabric, each, folder / f"{number}-{name}")
            for name, each in (("mixed", both), ("old", both[:1]), ("new", both[1:]))
        )
        assert mixed == old | new
        rules = step.rules


def _changed(plan: Plan, earlier: str, cut: str) -> tuple[Proof, Change]:
    """Return the proof of one step, and the change, from routes without a link that is back."""
    fabric = _without(plan.fabric, cut)
    old, new = _repaired(plan, earlier), _repaired(plan, cut)
    before = Installed(fabric, compile_rules(old), old.flow_control, plan=old)
    return _one_step(fabric, old, new), plan_change(before, new)


def test_no_step_after_a_failure_loses_more_than_the_rules_before_or_after_it(
    tmp_path: Path,
) -> None:
    for seed, rng in seeded(range(40)):
        plan = make_plan(small_fabric(rng), rng.choice(("updown", "lturn", "dl")))
        names = [link.name for link in plan.fabric.links]
        whole = [n for n in names if set(parts(_without(plan.fabric, n), NO_FAILURES)) == {0}]
        if len(whole) > 1:
            _, change = _changed(plan, *rng.sample(whole, 2))
            assert change.proven
            _assert_no_mixture_loses_more(change, tmp_path / str(seed))


def test_one_step_is_refused_only_where_a_mixture_loses_more(tmp_path: Path) -> None:
    plan = make_plan(load("torus,3,3"), "updown")
    refused = 0
    for earlier, cut in permutations(plan.fabric.links, 2):
        if not {earlier.a, earlier.b} & {cut.a, cut.b}:
            continue
        proof, change = _changed(plan, earlier.name, cut.name)
        if proof.acyclic and proof.lost and not proof.mixed.loses:
            refused += 1
            _assert_no_mixture_loses_more(change, tmp_path / str(refused))
        assert change.proven
        assert change.tier == 1 or not proof.safe
    assert refused == 8
