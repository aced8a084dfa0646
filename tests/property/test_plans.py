"""Guarantees of every engine on every fabric."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import FabricError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import read_dir, write_dir
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import (
    Action,
    FabricRules,
    Output,
    PopVlan,
    PushVlan,
    SetField,
    SwitchRules,
    ToGroup,
)
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import Fabric
from knotless.topologies.formats.files import from_json, to_json
from knotless.topologies.validate import validate
from knotless.verification.check import check
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.dependencies import edges_of
from tests.support.fabric_strategies import graphs, grids, shuffled
from tests.support.one_switch import OneByOne
from tests.support.reference_rules import RuleReference

SELECT = st.sampled_from(["spread", "low-port"])
FABRICS = st.one_of(graphs(), grids())
FEW = pytest.mark.examples(0.3)
"""For tests that walk every pair twice, once slowly."""


def _plan_is_sound(plan: Plan) -> None:
    """The rules deliver everything, according to the check and the reference; figures agree."""
    rules = compile_rules(plan)
    verdict = check(plan.fabric, rules)
    assert verdict.problems == []
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0)
    summary = CheckedPlan(plan).summary()
    assert summary["cycle"] == verdict.cycle
    with tempfile.TemporaryDirectory() as folder:
        write_dir(plan.fabric, rules, folder)
        assert read_dir(folder) == (plan.fabric, rules)
        reference = RuleReference(Path(folder))
        mean, most, load = reference.all_pairs()
        assert (mean, most, load) == (
            verdict.mean_switches,
            verdict.max_switches,
            verdict.max_channel_load,
        )
        assert load == summary["max_channel_load"]
        assert abs(mean - float(str(summary["mean_switches"]))) < 1e-9
        reference.broadcasts()
        assert reference.has_cycle() != verdict.acyclic


@FEW
@given(FABRICS, SELECT)
def test_minimal_is_minimal_and_delivers(fabric: Fabric, select: str) -> None:
    plan = make_plan(fabric, "minimal", select=select)
    assert CheckedPlan(plan).summary()["minimal"] is True
    _plan_is_sound(plan)


@FEW
@given(FABRICS, SELECT, st.integers(1, 8), st.data())
def test_updown_is_acyclic_and_delivers(
    fabric: Fabric, select: str, vcs: int, data: st.DataObject
) -> None:
    root = data.draw(st.sampled_from([None, *[switch.name for switch in fabric.switches]]))
    plan = make_plan(fabric, "updown", select=select, vcs=vcs, root=root)
    assert CheckedPlan(plan).cycle == []
    assert check(fabric, compile_rules(plan), flow_control="pause").acyclic
    _plan_is_sound(plan)


@FEW
@given(grids(), SELECT)
def test_dor_is_acyclic_and_minimal_with_datelines(fabric: Fabric, select: str) -> None:
    plan = make_plan(fabric, "dor", select=select)
    assert CheckedPlan(plan).cycle == []
    assert plan.vcs <= 2
    assert CheckedPlan(plan).summary()["minimal"] is True
    _plan_is_sound(plan)


@FEW
@given(grids(), SELECT)
def test_dor_with_one_virtual_channel_delivers_and_names_its_cycle(
    fabric: Fabric, select: str
) -> None:
    plan = make_plan(fabric, "dor", select=select, vcs=1)
    assert plan.vcs == 1
    if fabric.grid is None or not fabric.grid.wrap or max(fabric.grid.dims) < 4:
        assert CheckedPlan(plan).cycle == []
    elif select == "low-port":
        assert CheckedPlan(plan).cycle != []
    _plan_is_sound(plan)


@FEW
@given(FABRICS, st.sampled_from(["minimal", "updown", "lash"]), st.integers(0, 7))
def test_priority_tagged_frames_take_the_routes_of_untagged_ones(
    fabric: Fabric, engine: str, priority: int
) -> None:
    """IEEE 802.1Q, 6.9: they are in no VLAN. The fabric's priorities are those of the plan."""
    rules = compile_rules(make_plan(fabric, engine))
    untagged, tagged = (OneByOne(fabric, rules, tags) for tags in [(), (priority << 13,)])
    for walk in (untagged, tagged):
        walk.pairs()
        walk.floods([None])
    assert (tagged.undelivered, tagged.floods_undelivered) == (0, 0)
    assert (tagged.edges, tagged.loads) == (untagged.edges, untagged.loads)


@given(FABRICS, SELECT, st.sampled_from(["minimal", "updown"]), st.data())
def test_the_order_of_hosts_and_links_changes_nothing(
    fabric: Fabric, select: str, engine: str, data: st.DataObject
) -> None:
    other = data.draw(shuffled(fabric))
    a, b = (make_plan(each, engine, select=select) for each in (fabric, other))
    for source in fabric.hosts:
        for target in fabric.hosts:
            assert a.path(source.name, target.name) == b.path(source.name, target.name)
    assert CheckedPlan(a).cycle == CheckedPlan(b).cycle


@given(FABRICS, SELECT)
def test_no_path_depends_on_the_host_at_its_end(fabric: Fabric, select: str) -> None:
    plan = make_plan(fabric, "updown", select=select, vcs=3)
    for source in fabric.hosts:
        by_switch: dict[str, set[str]] = {}
        for target in fabric.hosts:
            hops = plan.path(source.name, target.name)[:-1]
            by_switch.setdefault(target.switch, set()).add(repr(hops))
        assert all(len(paths) == 1 for paths in by_switch.values())


@FEW
@given(FABRICS, st.data())
def test_a_missing_rule_is_noticed(fabric: Fabric, data: st.DataObject) -> None:
    """Remove one rule that carries traffic: some packet is treated differently.

    It need not be lost: a rule of lower priority may send it to its destination on another path.
    """
    rules = compile_rules(make_plan(fabric, "updown"))
    with tempfile.TemporaryDirectory() as folder:
        write_dir(fabric, rules, folder)
        reference = RuleReference(Path(folder))
        reference.all_pairs()
    [read] = reference.rules
    used = [
        (name, place) for name, place in sorted(read.used) if read.flows[name][place].priority > 0
    ]
    if not used:
        return
    name, place = data.draw(st.sampled_from(used))
    kept = rules[name].rules[:place] + rules[name].rules[place + 1 :]
    broken = {**rules, name: type(rules[name])(kept, rules[name].groups)}
    assert state_of_rules(fabric, rules).difference(state_of_rules(fabric, broken))


@st.composite
def wounded(draw: st.DrawFn, rules: FabricRules) -> FabricRules:
    """Rules, some of them lost, duplicated, redirected, retagged or with another priority."""
    wounds = st.sampled_from(["lose", "output", "push", "pop", "vid", "pcp", "group", "priority"])
    for _ in range(draw(st.integers(0, 4))):
        name = draw(st.sampled_from(sorted(rules)))
        of_switch = rules[name].rules
        place = draw(st.integers(0, len(of_switch) - 1))
        rule = of_switch[place]
        number = draw(st.integers(0, 7))
        extra: dict[str, Action] = {
            "output": Output(number),
            "push": PushVlan(),
            "pop": PopVlan(),
            "vid": SetField("vlan_vid", 0x1000 | number),
            "pcp": SetField("vlan_pcp", number),
            "group": ToGroup(number),
        }
        kind = draw(wounds)
        healed = rule._replace(priority=100 * number) if kind == "priority" else rule
        if kind in extra:
            healed = rule._replace(actions=(*rule.actions, extra[kind]))
        kept = () if kind == "lose" else (healed,)
        changed = (*of_switch[:place], *kept, *of_switch[place + 1 :])
        rules = {**rules, name: SwitchRules(changed, rules[name].groups)}
    return rules


@pytest.mark.examples(0.6)
@given(FABRICS, SELECT, st.sampled_from(["minimal", "updown", "lash"]), st.data())
def test_exploration_equals_tracing_frames_one_by_one(
    fabric: Fabric, select: str, engine: str, data: st.DataObject
) -> None:
    rules = data.draw(wounded(compile_rules(make_plan(fabric, engine, select=select))))
    together, singly = state_of_rules(fabric, rules), OneByOne(fabric, rules)
    singly.pairs()
    singly.floods([None])
    assert set(map(tuple, edges_of(together).tolist())) == singly.edges
    assert together.loads.tolist() == singly.loads
    assert together.core.undelivered == singly.undelivered
    assert together.core.floods_undelivered == [singly.floods_undelivered]
    assert together.core.switches_passed == singly.switches_passed
    assert together.core.max_switches == singly.max_switches


@FEW
@given(
    FABRICS,
    st.sampled_from(["arp", "ip"]),
    st.sampled_from(["switch", "host"]),
    st.data(),
)
def test_rules_that_check_sources_are_read_as_their_state(
    fabric: Fabric, check_of: str, tagging: str, data: st.DataObject
) -> None:
    invented = data.draw(st.sets(st.integers(0, len(fabric.hosts) - 1)))
    hosts = enumerate(fabric.hosts)
    fabric = replace(
        fabric,
        hosts=tuple(replace(host, ip_invented=number in invented) for number, host in hosts),
    )
    checked = CheckedPlan(make_plan(fabric, "updown", source_check=check_of, tagging=tagging))
    tags = checked.plan.host_tags()
    read = state_of_rules(fabric, checked.rules, (), tags, any_address=False)
    assert checked.state.core.difference(read.core) is None
    verdict = checked.rules_verdict
    assert verdict.problems == []
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0)


@given(FABRICS)
def test_fabrics_survive_json(fabric: Fabric) -> None:
    assert from_json(to_json(fabric)) == fabric


@pytest.mark.examples(0.25)
@given(grids())
def test_removing_links_leaves_updown_sound(fabric: Fabric) -> None:
    for place in range(len(fabric.links)):
        links = fabric.links[:place] + fabric.links[place + 1 :]
        cut = Fabric(fabric.name, fabric.switches, fabric.hosts, links)
        try:
            validate(cut)
        except FabricError:
            continue  # it fell apart
        rules = compile_rules(make_plan(cut, "updown"))
        assert check(cut, rules).ok
        return
