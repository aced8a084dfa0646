"""Plans with multipath: their next hops, their verdicts, and what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from knotless.base.errors import PlanError
from knotless.cli.main import main
from knotless.forwarding.dot1q.from_plan import export
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import Choose, Output, SwitchRules
from knotless.routing.plan import Plan, make_plan, refuse_unruly
from knotless.routing.repair import repair
from knotless.topologies import load
from knotless.topologies.failures import Failures
from knotless.topologies.formats.files import from_json, to_json
from knotless.verification.check import verdict_of
from knotless.verification.checked_plan import CheckedPlan
from tests.support.reference_rules import RuleReference


def planned(spec: str, engine: str = "auto", **choices: Any) -> Plan:
    return make_plan(load(spec), engine, multipath="ecmp", **choices)


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(arguments))


def test_a_leaf_takes_every_spine_and_a_spine_its_only_link() -> None:
    plan = planned("fattree2,4")
    sets = plan.next_hops
    assert sets is not None
    spines = {
        switch.name for switch in plan.fabric.switches if not plan.fabric.hosts_at[switch.name]
    }
    heads = [plan.channels.names[plan.channels.head[channel]] for channel in sets.choices(0, 1)]
    assert sorted(heads) == sorted(spines)
    spine = plan.fabric.switch_index[heads[0]]
    assert [int(plan.channels.head[channel]) for channel in sets.choices(spine, 1)] == [1]
    assert sets.choices(1, 1) == []


@pytest.mark.parametrize("spec", ["fattree2,4", "fattree,2,4,2", "fattree3,4", "clos3,4"])
def test_on_trees_all_engines_take_all_shortest_paths(spec: str) -> None:
    sets = [planned(spec, engine).next_hops for engine in ("updown", "fattree", "minimal")]
    first, *others = [found for found in sets if found is not None]
    for other in others:
        assert np.array_equal(first.ends, other.ends)
        assert np.array_equal(first.channels, other.channels)


def test_equal_shares_load_all_links_of_a_clos_alike() -> None:
    plan = planned("fattree2,4")
    loads = state_of_plan(plan).loads
    assert loads == pytest.approx(np.full(len(plan.channels), loads[0]))


def test_the_union_of_all_choices_is_what_can_deadlock() -> None:
    # Of six switches in a ring, those opposite have two shortest paths: both directions close.
    verdict = verdict_of(state_of_plan(planned("ring,6", "minimal")), "pause")
    assert verdict.undelivered == 0
    assert len(verdict.cycle) == 6
    assert verdict_of(state_of_plan(planned("ring,6", "updown")), "pause").acyclic


def test_with_several_virtual_channels_each_host_keeps_its_own() -> None:
    state = state_of_plan(planned("fattree2,4", "updown", vcs=2))
    used = [
        {
            hop.priority
            for hop in state.trace(source, "h16").hops
            if hop.channel < len(state.channels)
        }
        for source in ("h1", "h2")
    ]
    assert used == [{0}, {1}]


def test_shares_of_a_packet_sum_to_one_at_each_level() -> None:
    plan = planned("fattree3,4")
    state = state_of_plan(plan)
    last = len(plan.fabric.hosts) - 1
    shares = state.shares("h1", last)
    assert [share for _, share in shares][-1] == pytest.approx(1.0)
    assert sorted({share for _, share in shares}) == pytest.approx([0.25, 0.5, 1.0])
    assert {hop for hop, _ in shares} == set(state.trace_number("h1", last).hops)


@pytest.mark.parametrize(
    ("spec", "choices", "message"),
    [
        (
            "mesh,4,4",
            {"engine": "dor"},
            "multipath: dor has one path for each pair; engines with several",
        ),
        ("fattree2,4", {"tagging": "host"}, "multipath: tagging host needs one path for each pair"),
        ("fattree2,4", {"vlans": "tree"}, "multipath: vlans tree needs one path for each pair"),
        (
            "fattree2,4",
            {"protection": "fast-failover"},
            "protection fast-failover needs one path",
        ),
    ],
)
def test_what_needs_one_path_is_refused(spec: str, choices: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        planned(spec, **choices)


def test_what_follows_one_path_refuses_the_plan() -> None:
    with pytest.raises(PlanError, match="h1 has several paths to h2"):
        planned("fattree2,4").path("h1", "h2")
    with pytest.raises(PlanError, match="802.1Q tables have one port"):
        export(planned("fattree2,4"))


@pytest.mark.parametrize(("spines", "refused"), [(64, False), (65, True)])
def test_more_next_hops_than_are_followed_are_refused(spines: int, *, refused: bool) -> None:
    ends = [(leaf, spine) for leaf in (1, 2) for spine in range(3, 3 + spines)]
    switches = [{"name": f"s{i}", "dpid": i} for i in range(1, 3 + spines)]
    hosts = [
        {"name": f"h{i}", "mac": f"02:00:00:00:00:0{i}", "ip": f"10.0.0.{i}"}
        | {"switch": f"s{i}", "port": 1}
        for i in (1, 2)
    ]
    links = [
        {"a": f"s{leaf}", "a_port": spine, "b": f"s{spine}", "b_port": leaf} for leaf, spine in ends
    ]
    fabric = from_json({"name": "wide", "switches": switches, "hosts": hosts, "links": links})
    plan = make_plan(fabric, "updown", multipath="ecmp")
    assert plan.next_hops is not None
    assert plan.next_hops.sizes.max() == spines
    if refused:
        with pytest.raises(PlanError, match="choose among 65 next hops"):
            refuse_unruly(plan)
    else:
        refuse_unruly(plan)
    # What is refused cannot be proven, and what is not, can.
    assert (CheckedPlan(plan).rules_verdict.undelivered == 0) != refused


def test_a_repair_removes_next_hops_and_keeps_all_others() -> None:
    plan = planned("fattree2,4")
    found = repair(plan, Failures.from_names(plan.fabric, ["s1-s5"]))
    old, new = plan.next_hops, found.plan.next_hops
    assert old is not None
    assert new is not None
    leaving = plan.channels.leaving
    gone = {leaving[0, 5]} | {leaving[leaf, 5] for leaf in (1, 2, 3)}
    for to in range(4):
        for at in range(4):
            lost = set(old.choices(at, to)) - set(new.choices(at, to))
            assert set(new.choices(at, to)) <= set(old.choices(at, to))
            # From s1 nothing goes to the spine s5, and to s1 nothing goes by it.
            assert lost == (gone & set(old.choices(at, to)) if 0 in (at, to) else set())
    # All pairs of s1 with the 12 hosts of other leaves, in both directions.
    assert (found.kind, found.moved, found.mean_stretch) == ("repaired", 2 * 4 * 12, 1.0)
    assert CheckedPlan(found.plan).rules_verdict.safe


@pytest.mark.parametrize(
    ("spec", "engine", "failed", "kind"),
    [
        ("fattree2,4", "auto", ["s5"], "repaired"),
        ("fattree3,4", "auto", ["s1-s9"], "repaired"),
        ("fattree3,4", "fattree", ["s1-s9", "s2-s10"], "updown"),
        ("hyperx,S=3x3,hosts=1", "updown", ["s1-s2"], "replanned"),
        ("irregular-a", "updown", ["s3"], "replanned"),
        ("ring,4", "updown", ["s1-s2", "s3-s4"], "repaired"),
    ],
)
def test_repairs_deliver_without_cycle(
    spec: str, engine: str, failed: list[str], kind: str
) -> None:
    plan = planned(spec, engine)
    found = repair(plan, Failures.from_names(plan.fabric, failed))
    verdict = CheckedPlan(found.plan).rules_verdict
    assert (found.kind, verdict.safe) == (kind, True)
    assert (verdict.undelivered, verdict.failed) == (0, 0)
    assert found.plan.multipath == "ecmp"
    assert plan.next_hops is not None
    assert found.plan.next_hops is not None
    assert (plan.next_hops.sizes > 1).any() or spec == "ring,4"
    same = repair(plan, Failures.from_names(plan.fabric, failed))
    assert same.plan.next_hops is not None
    assert np.array_equal(found.plan.next_hops.channels, same.plan.next_hops.channels)


def test_plan_prints_and_writes_sets_of_next_hops(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    done = run("plan", "fattree2,4", "--multipath", "ecmp", "--json", "--out", str(file))
    summary = json.loads(done.stdout)
    assert (done.exit_code, summary["multipath"], summary["acyclic"]) == (0, "ecmp", True)
    assert (summary["max_next_hops"], summary["minimal"], summary["vlans"]) == (4, True, 1)
    assert json.loads(file.read_text())["next_hops"]["s1"]["s2"] == [5, 6, 7, 8]


@pytest.mark.parametrize("option", ["--compare", "--explain"])
def test_plan_refuses_options_of_single_paths(option: str) -> None:
    done = run("plan", "fattree2,4", "--multipath", "ecmp", option)
    assert done.exit_code == 2
    assert "one path for each pair" in done.stderr


def test_a_cycle_of_choices_is_shown_with_its_packets() -> None:
    done = run("plan", "ring,6", "--engine", "minimal", "--multipath", "spray", "--json")
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)["cycle"]) == 6


@pytest.mark.parametrize(
    ("spec", "engine", "choices"),
    [
        ("fattree2,4", "auto", {}),
        ("fattree3,4", "auto", {"multicast": {1: ["h1", "h5", "h9"]}}),
        ("fattree,2,4,2", "updown", {"vcs": 2}),
        ("irregular-a", "updown", {}),
        ("torus,4,4", "minimal", {}),
    ],
)
def test_rules_do_what_the_plan_says(spec: str, engine: str, choices: dict[str, Any]) -> None:
    plan = planned(spec, engine, **choices)
    state = state_of_plan(plan)
    rules = compile_rules(plan)
    read = state_of_rules(plan.fabric, rules, plan.multicast)
    assert state.difference(read) == ""
    for control in ("pause", "pfc"):
        ours, theirs = verdict_of(state, control), verdict_of(read, control)
        assert (theirs.undelivered, theirs.failed) == (0, 0)
        assert (ours.cycle, ours.max_channel_load) == (theirs.cycle, theirs.max_channel_load)
        assert ours.mean_switches == pytest.approx(theirs.mean_switches)


def test_each_switch_hashes_from_another_number() -> None:
    rules = compile_rules(planned("fattree3,4"))
    bases = [
        {
            action.basis
            for rule in of_switch.rules
            for action in rule.actions
            if isinstance(action, Choose)
        }
        for of_switch in rules.values()
    ]
    used = [basis for of_switch in bases for basis in of_switch]
    assert len(used) == len(set(used)) == sum(map(bool, bases)) == 16  # leaves and middle switches


def test_rules_are_written_and_checked_as_files(tmp_path: Path) -> None:
    folder = str(tmp_path / "rules")
    written = run("flows", "fattree2,4", "--multipath", "ecmp", "--out", folder, "--json")
    assert (written.exit_code, json.loads(written.stdout)["vlans"]) == (0, 1)
    rules = (tmp_path / "rules" / "s1.flows").read_text()
    chosen = re.findall(r"bundle_load\(eth_src,\d+,hrw,ofport,OXM_OF_METADATA.*?,(.*?)\)", rules)
    assert set(chosen) == {"members:5,6,7,8"}
    assert "type=select" not in (tmp_path / "rules" / "s1.groups").read_text()
    done = run("check", folder, "--json")
    verdict = json.loads(done.stdout)
    assert (done.exit_code, verdict["undelivered"], verdict["acyclic"]) == (0, 0, True)
    traced = json.loads(run("check", folder, "--pair", "h1", "h16", "--json").stdout)
    assert [link["probability"] for link in traced["links"]] == [0.25] * 8 + [1.0]
    assert traced["links"][0]["link"] == "s1:5/0"
    assert traced["delivered"] == ["h16"]
    assert "s1:5/0  VLAN 2  25 %\n" in run("check", folder, "--pair", "h1", "h16").stdout
    refused = run("flows", "fattree2,4", "--multipath", "spray", "--out", folder)
    assert (refused.exit_code, "no OpenFlow rule sprays" in refused.stderr) == (2, True)


@pytest.mark.parametrize(("spec", "engine"), [("fattree3,4", "auto"), ("irregular-a", "updown")])
def test_rules_deliver_whatever_the_hash_chooses(spec: str, engine: str) -> None:
    plan = planned(spec, engine)
    files = {"fabric.json": json.dumps(to_json(plan.fabric))}
    for name, rules in compile_rules(plan).items():
        files[f"{name}.flows"], files[f"{name}.groups"] = write(rules)
    reference = RuleReference(files)
    _, most, load_ = reference.all_pairs()
    reference.broadcasts()
    assert not reference.has_cycle()
    verdict = CheckedPlan(plan).rules_verdict
    assert verdict.max_switches == most
    assert verdict.max_channel_load == pytest.approx(load_)


def test_select_groups_of_others_are_read() -> None:
    # As ovs-ofctl -O OpenFlow15 dump-groups of Open vSwitch 3.1 prints them.
    groups = (
        "group_id=7,type=select,selection_method=hash,selection_method_param=9,"
        "fields(eth_src,ip_src),bucket=bucket_id:0,actions=output:2,bucket=bucket_id:1,"
        "weight:50,actions=output:3"
    )
    (group,) = parse("priority=1 actions=group:7", groups).groups
    assert (group.selects, group.buckets) == (True, ((Output(2),), (Output(3),)))
    assert parse(*write(SwitchRules((), (group,)))).groups == (group,)


@pytest.mark.parametrize(
    ("spec", "multipath", "engine"),
    [
        ("hyperx,S=4x4", "none", "hyperx"),
        ("hyperx,S=4x4", "ecmp", "updown"),
        ("fattree2,4", "ecmp", "fattree"),
        ("slimfly,3", "layers", "updown"),
    ],
)
def test_the_default_engine_has_the_multipath_that_is_asked_for(
    spec: str, multipath: str, engine: str
) -> None:
    assert make_plan(load(spec), "auto", multipath=multipath).engine == engine
