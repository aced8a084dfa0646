"""Frames that the compiled rules admit, and frames that they drop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from knotless.base.errors import PlanError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import write_dir
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.rules import ADMISSION, COOKIE, Field, Output, SwitchRules
from knotless.routing.graphs.channels import Priorities
from knotless.routing.plan import make_plan
from knotless.routing.routes import ExplicitRoutes, Routes
from knotless.topologies import load
from knotless.topologies.numbering import mac_text, mac_value
from knotless.verification.check import check
from tests.support.one_switch import Frame, Pipeline
from tests.support.reference_rules import RuleReference

H1, H2, H9 = (mac_value(f"02:00:00:00:0{switch}:01") for switch in (1, 2, 9))
GROUP = 1 << 40
EVERYONE = 0xFFFFFFFFFFFF
PAUSE = 0x0180C2000001


@pytest.fixture
def s1() -> Pipeline:
    plan = make_plan(load("ring,5"), "dor")
    return Pipeline("s1", compile_rules(plan)["s1"])


def test_own_untagged_frames_are_tagged_and_sent_on(s1: Pipeline) -> None:
    assert s1.outputs(1, Frame(H2, H1, 0x0800)) == ((2, Frame(H2, H1, 0x0800, (2,))),)


@pytest.mark.parametrize("tag", [0, 5 << 13])
def test_priority_tagged_frames_go_where_untagged_ones_go_and_keep_their_tags(
    s1: Pipeline, tag: int
) -> None:
    """IEEE 802.1Q, 6.9: they are in no VLAN. On their way, the plan's priority counts."""
    assert s1.outputs(1, Frame(H2, H1, 0x0800, (tag,))) == ((2, Frame(H2, H1, 0x0800, (2, tag))),)
    assert s1.outputs(2, Frame(H1, H2, 0x0800, (2, tag))) == ((1, Frame(H1, H2, 0x0800, (tag,))),)


@pytest.mark.parametrize(
    ("in_port", "frame"),
    [
        (1, Frame(H2, H9, 0x0800)),  # a forged source
        (1, Frame(H2, H1, 0x0800, (2,))),  # tagged by the host itself
        (1, Frame(H2, H9, 0x0800, (0,))),  # a forged source, priority-tagged
        (2, Frame(H1, H2, 0x0800, (0,))),  # priority-tagged from another switch
        (1, Frame(PAUSE, H1, 0x8808)),  # MAC control
        (1, Frame(0x0180C200000E, H1, 0x88CC)),  # LLDP
        (1, Frame(H9, H1, 0x0800)),  # to nobody
        (1, Frame(H1, H1, 0x0800)),  # to itself
        (1, Frame(H2 + 1, H1 + 1, 0x0800)),
        (2, Frame(H1, H2, 0x0800)),  # untagged from another switch
        (2, Frame(H1, H2, 0x0800, (1,))),  # VLANs that are not in use
        (2, Frame(H1, H2, 0x0800, (3,))),
        (2, Frame(H1, H2, 0x0800, (4094,))),
        (2, Frame(PAUSE, H2, 0x8808, (2,))),
        (7, Frame(H1, H2, 0x0800)),  # a port that is not in the fabric
        (7, Frame(H1, H2, 0x0800, (2,))),
    ],
)
def test_all_else_is_dropped(s1: Pipeline, in_port: int, frame: Frame) -> None:
    assert s1.outputs(in_port, frame) == ()
    assert not s1.problems


def test_a_priority_is_set_and_not_taken_from_the_host() -> None:
    plan = make_plan(load("flat,2"), "updown")
    s1 = Pipeline("s1", compile_rules(plan)["s1"])
    a, b = (mac_value(host.mac) for host in plan.fabric.hosts)
    assert s1.outputs(1, Frame(b, a, 0x0800)) == ((2, Frame(b, a, 0x0800)),)


def test_dateline_raises_the_priority_behind_the_wrap_link() -> None:
    rules = compile_rules(make_plan(load("ring,5"), "dor"))
    s1 = Pipeline("s1", rules["s1"])
    assert s1.outputs(3, Frame(H2, H9, 0x0800, (2,))) == (
        (2, Frame(H2, H9, 0x0800, (1 << 13 | 2,))),
    )


def test_frames_are_never_dropped_without_being_counted() -> None:
    plan = make_plan(load("torus,4,4,hosts=2"), "dor")
    for of_switch in compile_rules(plan).values():
        assert {rule.cookie for rule in of_switch.rules} == {COOKIE}
        for table in range(4):
            catch_all = [r for r in of_switch.rules if r.table == table and r.match == ()]
            assert [rule.priority for rule in catch_all] == [0]


def test_rules_have_distinct_keys_and_one_order() -> None:
    for of_switch in compile_rules(make_plan(load("torus,4,4,hosts=2"), "minimal")).values():
        keys = [rule.key for rule in of_switch.rules]
        assert len(set(keys)) == len(keys)
        places = [(table, -priority) for table, priority, _ in keys]
        assert places == sorted(places)
        again = parse(*write(SwitchRules(of_switch.rules[::-1], of_switch.groups)))
        assert again == of_switch
        used = {port for group in of_switch.groups for b in group.buckets for port in b}
        assert any(isinstance(action, Output) for action in used)


def test_any_macs_can_be_compiled() -> None:
    fabric = load("ring,5,hosts=2")
    hosts = tuple(
        replace(host, mac=f"0a:00:00:00:00:{i + 1:02x}") for i, host in enumerate(fabric.hosts)
    )
    odd = replace(fabric, hosts=hosts)
    rules = compile_rules(make_plan(odd, "dor"))
    verdict = check(odd, rules)
    assert verdict.ok
    assert verdict.problems == []
    admitted = [
        rule.match for rule in rules["s1"].rules if rule.table == ADMISSION and rule.actions
    ]
    own = [Field("eth_src", mac_value(host.mac)) for host in hosts[:2]]
    assert [field for match in admitted for field in match if field.name == "eth_src"] == own


@pytest.mark.parametrize("random_macs", [False, True])
@pytest.mark.parametrize(
    ("spec", "engine"), [("torus,5,5", "dor"), ("random,12,hosts=2", "dl"), ("lsft,3", "lsft")]
)
def test_frames_without_a_receiver_are_dropped(
    spec: str, engine: str, random_macs: bool, tmp_path: Path
) -> None:
    fabric = load(spec)
    rng = Random(1)  # noqa: S311 - it only has to be repeatable
    if random_macs:
        hosts = tuple(
            replace(host, mac=mac_text(rng.getrandbits(48) & ~GROUP)) for host in fabric.hosts
        )
        fabric = replace(fabric, hosts=hosts)
    write_dir(fabric, compile_rules(make_plan(fabric, engine)), tmp_path)
    reference = RuleReference(tmp_path)
    taken = {mac_value(host.mac) for host in fabric.hosts}
    near = {mac ^ 1 << bit for mac in taken for bit in range(16)}
    anything = {rng.getrandbits(48) & ~GROUP for _ in range(100)}
    for source in list(reference.hosts)[::5]:
        for address in sorted(near | anything)[:: len(taken)]:
            if address not in taken:
                assert reference.sent(source, mac_text(address)) == {()}


def with_priorities(routes: Routes, priorities: Priorities) -> Routes:
    trees = (routes.tree_channels, routes.tree_priorities)
    return ExplicitRoutes(routes.rows, routes.channels, priorities, *trees)


def test_virtual_channels_by_pair_are_set_on_admission() -> None:
    plan = make_plan(load("ring,5"), "dor", vcs=1)
    priorities = plan.routes.priorities.copy()
    priorities[0, 2, :] = 3
    odd = replace(plan, routes=with_priorities(plan.routes, priorities))
    rules = compile_rules(odd)
    h3 = mac_value("02:00:00:00:03:01")
    s1 = Pipeline("s1", rules["s1"])
    assert s1.outputs(1, Frame(h3, H1, 0x0800))[0][1].priority == 3
    assert s1.outputs(1, Frame(H2, H1, 0x0800))[0][1].priority == 0
    assert check(odd.fabric, rules).undelivered == 0


def test_virtual_channels_that_no_table_can_change_are_refused() -> None:
    plan = make_plan(load("ring,7"), "dor", vcs=1)
    priorities = plan.routes.priorities.copy()
    assert np.count_nonzero(plan.routes.channels[0, 2] >= 0) == 2
    priorities[0, 2, 1] = 1  # h1 to h3 and h1 to h4 pass s2 by the same ports
    odd = replace(plan, routes=with_priorities(plan.routes, priorities))
    with pytest.raises(PlanError, match="s2: frames from port 3 to port 2 on priority 0"):
        compile_rules(odd)
