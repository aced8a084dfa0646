"""Backups on generated fabrics: every single failure is followed by a tracer of its own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import write_dir
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.failover import coverage
from tests.support.coverage_by_exploration import coverage_by_exploration
from tests.support.reference import Place
from tests.support.reference_rules import RuleFiles, RuleReference

CASES = [
    ("ring,4", {"request": "dl", "vcs": 2}),
    ("ring,5", {"request": "updown"}),
    ("mesh,3,2", {"request": "dor"}),
    ("mesh,3,3", {"request": "dor", "flow_control": "pfc"}),
    ("torus,3,3", {"request": "dor"}),
    ("fattree,2,2,2", {"request": "fattree"}),
    ("mesh,3,2,hosts=2", {"request": "updown", "tagging": "host", "vlans": "tree"}),
    *(
        (f"random,{6 + 2 * seed},degree=3,hosts=1,seed={seed}", {"request": "lash", "vcs": 4})
        for seed in (1, 2)
    ),
    ("random,7,degree=4,hosts=2,seed=3", {"request": "dfsssp"}),
    ("random,8,degree=3,hosts=1,seed=4", {"request": "lturn"}),
]


def _failures(
    links: list[tuple[Place, Place]], switches: list[str]
) -> Iterator[tuple[list[tuple[Place, Place]], str | None]]:
    """Yield the dead links of every single failure, and the switch that has failed."""
    for link in links:
        yield [link], None
    for name in switches:
        yield [ends for ends in links if name in (ends[0][0], ends[1][0])], name


def _parts(switches: list[str], links: list[tuple[Place, Place]]) -> dict[str, str]:
    """Return a switch of the connected part of each switch, the same for all in the part."""
    part = {name: name for name in switches}
    for _ in switches:
        for (a, _), (b, _) in links:
            part[a] = part[b] = min(part[a], part[b])
    return part


@pytest.mark.thin(3)
@pytest.mark.parametrize(("spec", "request_"), CASES)
def test_in_every_failure_packets_arrive_or_are_dropped(
    spec: str, request_: dict[str, Any], tmp_path: Path
) -> None:
    fabric = load(spec)
    plan = make_plan(fabric, **request_, protection="fast-failover")
    rules = compile_rules(plan)
    write_dir(fabric, rules, str(tmp_path / "rules"), plan.multicast, plan.host_tags())
    covered = coverage(fabric, rules, plan.flow_control, plan.multicast, plan.host_tags())
    lost: Counter[str] = Counter()
    intact = RuleFiles(tmp_path / "rules")
    links = [
        ((link["a"], link["a_port"]), (link["b"], link["b_port"]))
        for link in intact.fabric["links"]
    ]
    switches = [switch.name for switch in fabric.switches]
    for (dead, switch), reported in zip(_failures(links, switches), covered.failures, strict=True):
        ports = [end for link in dead for end in link]
        after = RuleFiles(tmp_path / "rules", ports)
        mixed = RuleReference(intact, after)
        unwanted = {
            fate
            for pair in mixed.pairs()
            for fate in mixed.fates(*pair)
            if fate not in ((pair[1],), ())
        }
        assert not unwanted
        assert not mixed.has_cycle(plan.flow_control)
        left = RuleReference(after)
        for end in ports:
            del left.peer[end]
        homes = {name: host["switch"] for name, host in left.hosts.items()}
        failed = [p for p in left.failed_pairs() if switch not in (homes[p[0]], homes[p[1]])]
        part = _parts(switches, [link for link in links if link not in dead])
        connected = [p for p in failed if part[homes[p[0]]] == part[homes[p[1]]]]
        assert reported.lost == len(connected), (dead, switch)
        lost["pairs"] += len(connected)
    assert covered.acyclic
    assert covered.lost == lost["pairs"] < covered.affected
    if plan.flow_control == "pfc":
        assert covered.share == 1, "with a priority of their own, backups close no cycle"


@pytest.mark.thin(4)
@pytest.mark.parametrize(("spec", "request_"), CASES)
def test_the_coverage_is_that_of_all_packets_explored_for_each_failure(
    spec: str, request_: dict[str, Any]
) -> None:
    """Also with rules that are missing, and under flow control with which failures deadlock."""
    plan = make_plan(load(spec), **request_, protection="fast-failover")
    rules = dict(compile_rules(plan))
    rng = random.Random(spec)  # noqa: S311
    damaged = dict(rules)
    for name in rng.sample(sorted(rules), 2):
        every = rules[name].rules
        kept = tuple(rule for rule in every if rng.random() < 0.9)
        damaged[name] = SwitchRules(kept, rules[name].groups)
    for given, flow_control in (
        (rules, FlowControl.PAUSE),
        (rules, FlowControl.PFC),
        (damaged, FlowControl.PFC),
    ):
        arguments = (plan.fabric, given, flow_control, plan.multicast, plan.host_tags())
        assert coverage(*arguments) == coverage_by_exploration(*arguments)
