"""Rules that cannot be read: they take away no step that another rule makes certain."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.ofctl_parser import parse_known
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import Action, Field, Output, Rule, SwitchRules
from knotless.importers.openflow.certain_steps import certain_state
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.check import verdict_of
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support import REPOSITORY
from tests.support.ovs_dumps import write_ovs

FILES = REPOSITORY / "tests" / "data" / "fabrics"
RING = ["s1:2/0", "s2:2/0", "s3:2/0"]


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


@pytest.mark.parametrize("folder", ["ovs-table-miss", "ovs-one-dump", "ovs-dec-ttl"])
def test_the_ring_can_deadlock(folder: str) -> None:
    verdict = judged(FILES / folder)
    assert (verdict.acyclic, verdict.cycle, verdict.missing) == (False, RING, [])
    assert (verdict.switches, verdict.hosts, verdict.undelivered) == (3, 3, 0)
    sent = [(witness.source, witness.destination) for witness in verdict.witnesses]
    assert sent == [("h1", "h3"), ("h2", "h1"), ("h3", "h2")]


@pytest.mark.parametrize(
    ("rule", "certain"),
    [
        ("priority=1 actions=learn(table=1),NORMAL", True),
        ("priority=40000,dl_dst=00:00:00:00:00:09 actions=resubmit(,3)", True),
        ("priority=40000,in_port=1,dl_dst=00:00:00:00:00:02 actions=resubmit(,3)", True),
        ("priority=40000,dl_type=0x86dd,nw_proto=6 actions=resubmit(,3)", True),
        ("table=3,priority=40000 actions=resubmit(,3)", True),
        ("priority=32768 actions=resubmit(,3)", False),
        ("dl_dst=00:00:00:00:00:03 actions=resubmit(,3)", False),
        ("priority=40000,tun_id=7 actions=output:1", False),
        ("priority=40000,in_port=3 actions=resubmit(,3)", False),
        ("priority=40000,tcp,tp_dst=80 actions=output:1", False),
        ("priority=40000,ip,nw_dst=10.0.0.0/8 actions=output:1", True),
        ("priority=40000,dl_dst=00:00:00:00:00:03 actions=set_field:1->eth_src,output:2", False),
        ("priority=70000 actions=output:1", False),
        ("what is this", False),
        ("group_id=7,type=indirect,bucket=actions=output:1", True),
    ],
)
def test_a_cycle_stays_if_no_unread_rule_may_match_its_packets(
    rule: str, certain: bool, tmp_path: Path
) -> None:
    """At s1, frames of h1 for h3 come on port 1, and those of h3 for h2 on port 3.

    Frames that carry no IP go round as well.
    """
    folder = shutil.copytree(FILES / "ovs-dec-ttl", tmp_path / "fabric")
    flows = folder / "s1" / "flows"
    flows.write_text(f"{flows.read_text()}{rule}\n")
    verdict = judged(folder)
    assert verdict.acyclic is (False if certain else None)
    assert verdict.cycle == RING
    assert bool(verdict.missing) is not certain


def test_a_ring_that_is_safe_is_not_called_so_with_an_unread_rule(tmp_path: Path) -> None:
    plan = make_plan(load("ring,4"), "updown")
    folder = write_ovs(plan.fabric, compile_rules(plan), tmp_path)
    assert judged(folder).acyclic is True
    flows = folder / "s2" / "flows"
    flows.write_text(
        flows.read_text() + " table=0, priority=50000,dl_type=0x88cc actions=CONTROLLER\n"
    )
    assert judged(folder).acyclic is None


def test_what_a_rule_matches_at_least() -> None:
    text = """
 table=2, priority=7,in_port=3,tun_id=0x9,dl_vlan=5 actions=output:1
 priority=1,reg0=5,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=resubmit(,1)
 priority=x actions=output:1
 hello
"""
    known = parse_known(text)
    assert known.rules == SwitchRules(())
    assert len(known.faults) == 4
    assert known.unread == (
        Rule(2, 7, (Field("in_port", 3), Field("vlan_vid", 0x1005))),
        Rule(0, 1, (Field("eth_dst", 1 << 40, 1 << 40),)),
        Rule(0, 0x10000, ()),
        Rule(0, 0x10000, ()),
    )


@pytest.mark.parametrize("text", ["set_queue:3", "meter:7", "dec_ttl(1,2)", "pop_queue", "note:00"])
def test_actions_that_change_no_path(text: str) -> None:
    known = parse_known(f"priority=1 actions={text},output:4\npriority=2 actions=enqueue:5:1\n")
    assert known.faults == ()
    assert [rule.actions for rule in known.rules.rules] == [(Output(5),), (Output(4),)]


@pytest.mark.seeds(60, gate=12)
def test_no_unread_rule_can_take_a_certain_cycle_away(seed: int) -> None:
    """Whatever the unread rules do (drop, or send to some port), the certain cycle is there."""
    rng = random.Random(seed)  # noqa: S311
    spec, engine = rng.choice([("ring,4", "minimal"), ("torus,3,3", "dor"), ("ring,5", "minimal")])
    plan = make_plan(load(spec), engine, **({"vcs": 1} if engine == "dor" else {}))
    fabric = plan.fabric
    rules = dict(compile_rules(plan))
    unread: dict[str, tuple[Rule, ...]] = {}
    for name in rng.sample(sorted(rules), rng.randint(1, 3)):
        every = [*rules[name].rules]
        drawn = rng.sample(every, rng.randint(1, 2))
        match = rng.choice([drawn[0].match, (Field("eth_dst", rng.getrandbits(48)),), ()])
        drawn.append(Rule(drawn[0].table, rng.choice([5, drawn[0].priority, 65535, 65535]), match))
        unread[name] = tuple(rule._replace(actions=(), metadata=None, goto=None) for rule in drawn)
        kept = tuple(rule for rule in every if rule not in drawn)
        rules[name] = SwitchRules(kept, rules[name].groups)
    certain = verdict_of(certain_state(fabric, rules, unread), "pause").acyclic is False
    for most in (0, 2, 2, 2):  # at first the unread rules drop
        behaves = {**rules}
        for name, left_out in unread.items():
            ports = [*fabric.neighbours[name], *fabric.hosts_at[name]]
            made = [rule._replace(actions=_any_actions(rng, ports, most)) for rule in left_out]
            ordered = sorted((*rules[name].rules, *made), key=lambda rule: rule.order)
            behaves[name] = SwitchRules(tuple(ordered), rules[name].groups)
        actual = verdict_of(state_of_rules(fabric, behaves), "pause").acyclic is False
        assert actual or not certain


def _any_actions(rng: random.Random, ports: list[int], most: int) -> tuple[Action, ...]:
    return tuple(map(Output, rng.sample(ports, rng.randint(0, most))))
