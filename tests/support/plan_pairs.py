"""Pairs of plans of one fabric, the change from one to the other, and what must be true of it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.forwarding.openflow.vlan_generations import (
    rules_in,
    same_rules,
    tags_in,
    vlan_generation_of,
)
from knotless.routing.plan import Plan, make_plan
from knotless.routing.repair import repair
from knotless.routing.request import PlanRequest
from knotless.topologies import Fabric, load
from knotless.topologies.failures import NO_FAILURES, Failures, parts, usable
from knotless.verification.changes.change import Change, Installed
from knotless.verification.changes.planner import plan_change
from knotless.verification.changes.proof import ProofContext, Prover
from tests.support.random_fabrics import small_fabric

SPECS = (
    *("ring,4", "ring,5", "torus,3,3", "mesh,3,3", "mesh,4,2,hosts=2", "fattree2,4", "lsft,2"),
    *("irregular-a", "random,8,degree=3,hosts=2,seed=1", "clos,3,hosts=2"),
)
ENGINES = (
    *(
        "auto",
        "dor",
        "updown",
        "updown",
        "lash",
        "dfsssp",
        "minimal",
        "lturn",
        "rturn",
        "dl",
        "sbp",
    ),
    *("sbp-reduced", "fattree", "lsft", "smodk", "prefix"),
)
OUTCOMES: Counter[str] = Counter()
"""The pairs so far, by what came out: a tier, or the reason of a refusal."""
NO_SUCH_PLAN = "no such plan"
REASONS = (
    "what is installed CAN DEADLOCK",
    "the new plan CAN DEADLOCK",
    "no order of steps could be proven",
)
"""The refusals of a change that are right; a plan may be refused for others."""


@dataclass(frozen=True)
class Pair:
    """What is installed, and the plan to change to."""

    before: Installed
    new: Plan
    options: tuple[dict[str, Any], dict[str, Any]]

    @property
    def only_groups_differ(self) -> bool:
        """Whether the plans are the same but for their multicast groups."""
        old, new = ({**options, "multicast": None} for options in self.options)
        return old == new and not self.new.failures


def random_groups(rng: random.Random, fabric: Fabric) -> dict[int, list[str]]:
    """Return none to three multicast groups of a fabric."""
    names = [host.name for host in fabric.hosts]
    return {
        number: rng.sample(names, rng.randint(1, min(4, len(names))))
        for number in rng.sample((1, 2, 3, 77), rng.choice((0, 1, 1, 2, 3)))
    }


def random_options(rng: random.Random, fabric: Fabric) -> dict[str, Any]:
    """Return random options of a plan."""
    options: dict[str, Any] = {"engine": rng.choice(ENGINES)}
    choices: dict[str, tuple[float, Any]] = {
        "select": (0.4, rng.choice(("spread", "low-port"))),
        "vcs": (0.3, rng.randint(1, 8)),
        "vlans": (0.3, rng.choice(("default", "tree"))),
        "max_vlans": (0.2, rng.choice((1, 2, 5, 4093))),
        "root": (0.3, rng.choice(fabric.switches).name),
        "protection": (0.1, "fast-failover"),
        "tagging": (0.2, "host"),
        "flow_control": (0.3, rng.choice(("none", "host", "switch", "pause", "pfc"))),
        "multicast": (0.5, random_groups(rng, fabric)),
    }
    options |= {key: value for key, (share, value) in choices.items() if rng.random() < share}
    return options


def random_pair(rng: random.Random) -> Pair | None:
    """Return a random pair; None if there is no such plan, which is counted by its reason."""
    fabric = load(rng.choice(SPECS)) if rng.random() < 0.5 else small_fabric(rng)
    old_options = random_options(rng, fabric)
    new_options = random_options(rng, fabric)
    if rng.random() < 0.25:
        new_options = {**old_options, "multicast": random_groups(rng, fabric)}
    try:
        old, new = (
            make_plan(fabric, PlanRequest.from_options(**options))
            for options in (old_options, new_options)
        )
        failures = NO_FAILURES
        if (
            "fast-failover" not in (old.request.protection, new.request.protection)
            and rng.random() < 0.3
        ):
            failures = _random_failure(rng, fabric)
        if failures:
            new = repair(new, failures).plan
        rules = compile_rules(old)
        compile_rules(new)
    except PlanError:
        OUTCOMES[NO_SUCH_PLAN] += 1
        return None
    both = (old.flow_control, new.flow_control)
    in_use = next((used for used in both if used.switch_links.by_priority), old.flow_control)
    before = Installed(
        usable(fabric, failures),
        rules,
        FlowControl(in_use),
        old.host_tags(),
        old.multicast,
        plan=old if rng.random() < 0.8 else None,
        whole=fabric if failures else None,
    )
    return Pair(before, new, (old_options, new_options))


def _random_failure(rng: random.Random, fabric: Fabric) -> Failures:
    """Return the failure of a link that separates nothing, or none."""
    failures = Failures.from_names(fabric, [rng.choice(fabric.links).name])
    return failures if set(parts(fabric, failures)) == {0} else NO_FAILURES


def prove(pair: Pair) -> Change | None:
    """Plan the change of a pair and prove each of its steps again; None if it is refused."""
    try:
        change = plan_change(pair.before, pair.new)
    except PlanError as refusal:
        text = str(refusal)
        reasons = [reason for reason in REASONS if reason in text]
        if not reasons or (pair.only_groups_differ and "CAN DEADLOCK" not in text):
            raise AssertionError(pair.options) from refusal
        OUTCOMES[reasons[0]] += 1
        return None
    OUTCOMES[f"tier {change.tier}" + ", in place" * change.in_place] += 1
    assert not (pair.only_groups_differ and change.tier == 3), pair.options
    before = pair.before
    groups = {group.number: group for group in (*before.multicast, *pair.new.multicast)}
    context = ProofContext(before.fabric, before.flow_control, tuple(groups.values()))
    generations = [Generation(before.rules, before.tags)]
    for step in change.steps:
        new = Generation(step.rules, step.tags)
        proof = Prover(context).prove([*generations, new])
        assert (proof.acyclic, proof.lost) == (True, 0), (pair.options, step.action)
        generations = [new] if step.await_quiescence else [*generations, new]
    last = change.steps[-1] if change.steps else None
    rules, tags = (last.rules, last.tags) if last else (before.rules, before.tags)
    generation = vlan_generation_of(rules, tags)
    wanted = rules_in(compile_rules(pair.new), generation)
    switches = before.fabric.switches
    wanted = {switch.name: wanted.get(switch.name, SwitchRules(())) for switch in switches}
    assert same_rules(rules, wanted), pair.options
    assert tags == tags_in(pair.new.host_tags(), generation), pair.options
    assert not (last and last.dropped)
    return change
