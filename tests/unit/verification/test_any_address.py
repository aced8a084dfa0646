"""Packets to addresses that no host has, in each kind of table: their waits count, no arrival."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.forwarding.dot1q.files import read_folder
from knotless.forwarding.dot1q.state import state_of_dot1q
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import read_dir
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import (
    FORWARD,
    Field,
    Group,
    Output,
    Rule,
    SwitchRules,
    ToGroup,
)
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.numbering import mac_value
from knotless.verification.check import Verdict, check, verdict_of
from knotless.verification.imported import verdict_of_imported
from tests.support.dot1q_exports import export_to
from tests.support.dumb_switch import flows_of
from tests.support.infiniband_dumps import of_plan
from tests.support.lossless_network import LosslessNetwork
from tests.support.ovs_dumps import write_ovs

STALE = Field("eth_dst", 0x0200_0000_0901)
RING = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]


def ring_with(*match: Field, priority: int = 50, left_out: str = "") -> Verdict:
    """Judge ring,4 with a rule in each switch that sends what it matches to the next switch."""
    plan = make_plan(load("ring,4"), "updown")
    rules = {}
    for name, of_switch in compile_rules(plan).items():
        added = Rule(FORWARD, priority, tuple(sorted(match)), (Output(2),))
        rows = (*of_switch.rules, *[added] * (name != left_out))
        in_order = tuple(sorted(rows, key=lambda rule: rule.order))
        rules[name] = SwitchRules(in_order, of_switch.groups)
    return check(plan.fabric, rules, flow_control="pause")


@pytest.mark.parametrize(
    ("match", "priority", "named"),
    [
        ([STALE], 50, "02:00:00:00:09:01"),
        ([Field("eth_dst", 0x0200_0000_8000, 0xFFFF_FFFF_8000)], 50, "02:00:00:00:80:00"),
        ([Field("eth_dst", 0, 1 << 40)], 50, "00:00:00:00:00:00"),
        ([Field("eth_dst", 0x0100_5E00_0005)], 400, "01:00:5e:00:00:05"),
        ([STALE, Field("eth_type", 0x86DD)], 50, "02:00:00:00:09:01/0x86dd"),
        ([Field("eth_dst", 0x0200_0000_0301), Field("eth_type", 0x86DD)], 290, "02:00:00:00:03:01"),
        ([Field("eth_dst", 0xFFFF_FFFF_FFFF), Field("eth_type", 0x0800)], 400, "ff:ff:ff:ff:ff:ff"),
    ],
)
def test_rules_for_an_address_that_no_host_has(
    match: list[Field], priority: int, named: str
) -> None:
    verdict = ring_with(*match, priority=priority)
    assert (verdict.acyclic, verdict.cycle, verdict.undelivered) == (False, RING, 0)
    assert any(step.destination.startswith(named) for step in verdict.witnesses)
    assert verdict.problems == []
    cut = ring_with(*match, priority=priority, left_out="s3")
    assert (cut.acyclic, cut.undelivered) == (True, 0)


def test_the_state_of_a_plan_has_few_such_classes() -> None:
    """Most addresses are treated like others: the check of our plans takes no longer."""
    plan = make_plan(load("torus,8,8"), "dor")
    rules = compile_rules(plan)
    state = state_of_rules(plan.fabric, rules)
    assert 0 < len(state.core.unassigned) < len(plan.fabric.hosts)
    assert state_of_rules(plan.fabric, rules, any_address=False).core.unassigned == []
    number = state.destination_number("h1", state.core.unassigned[0])
    assert number is not None
    assert state.destination_name(number) == state.core.unassigned[0]
    assert state.destination_number("h1", "02:00:00:00:77:77") is None


def test_the_command_names_the_address_and_traces_its_packet(tmp_path: Path) -> None:
    folder = str(tmp_path)
    words = ["flows", "ring,4", "--engine", "updown", "--flow-control", "pause", "--out", folder]
    assert CliRunner().invoke(main, words).exit_code == 0
    for file in tmp_path.glob("*.flows"):
        rule = "table=1,priority=50,dl_dst=02:00:00:00:09:01,actions=output:2\n"
        file.write_text(file.read_text() + rule)
    done = CliRunner().invoke(main, ["check", folder, "--flow-control", "pause"])
    assert done.exit_code == 1
    assert done.output.startswith("ring,4: CAN DEADLOCK under PAUSE\n")
    assert "pairs       12 delivered" in done.output
    assert "h1 to 02:00:00:00:09:01 holds" in done.output
    done = CliRunner().invoke(main, ["check", folder, "--pair", "h1", "02:00:00:00:09:01"])
    assert done.exit_code == 1
    assert [f"s{i}:2/0" in done.output for i in range(1, 5)] == [True] * 4
    assert ": not delivered, it " in done.output
    done = CliRunner().invoke(main, ["check", folder, "--failures", "1", "--json"])
    rows = json.loads(done.output)["failures"]
    assert {row["acyclic"] for row in rows} == {True}  # any dead link opens the ring


def test_dumps_of_open_vswitch(tmp_path: Path) -> None:
    plan = make_plan(load("ring,4"), "updown")
    rules = {}
    for name, of_switch in compile_rules(plan).items():
        rows = (*of_switch.rules, Rule(FORWARD, 50, (STALE,), (Output(2),)))
        in_order = tuple(sorted(rows, key=lambda rule: rule.order))
        rules[name] = SwitchRules(in_order, of_switch.groups)
    verdict = verdict_of_imported(read_paths([write_ovs(plan.fabric, rules, tmp_path)]))
    assert (verdict.acyclic, verdict.missing, verdict.undelivered) == (False, [], 0)
    assert "02:00:00:00:09:01" in {step.destination for step in verdict.witnesses}


def test_a_flood_for_unknown_addresses_goes_round_in_copies() -> None:
    plan = make_plan(load("ring,4"), "updown")
    rules = {}
    for name, of_switch in compile_rules(plan).items():
        group = Group(999, ((Output(2),), (Output(3),)))
        rule = Rule(FORWARD, 1, (), (ToGroup(999),))
        in_order = tuple(sorted((*of_switch.rules, rule), key=lambda rule: rule.order))
        rules[name] = SwitchRules(in_order, (*of_switch.groups, group))
    verdict = check(plan.fabric, rules, flow_control="pause")
    assert (verdict.acyclic, verdict.undelivered) == (False, 0)


@pytest.mark.parametrize("engine", ["prefix", "updown --tagging host"])
def test_a_static_address_in_tables_of_8021q_adds_nothing_to_floods(
    engine: str, tmp_path: Path
) -> None:
    """An entry leaves out ports of a flood. The same tables as OpenFlow rules show it."""
    export_to(tmp_path, f"ring,4 --engine {engine} --vlans tree")
    for file in sorted(tmp_path.glob("s?.json")):
        values = json.loads(file.read_text())
        ports = [port["port"] for port in values["ports"] if port["port"] != 1 and port["tagged"]]
        for vlan in {entry["vlan"] for entry in values["macs"]}:
            stale = {"vlan": vlan, "mac": "02:00:00:00:09:01", "port": ports[0]}
            values["macs"].append(stale)
        file.write_text(json.dumps(values))
    read = read_folder(tmp_path)
    assert all("02:00:00:00:09:01" in str(switch.macs) for switch in read.switches)
    rules = {
        switch.name: parse(flows_of(tmp_path / f"{switch.name}.json"), "")
        for switch in read.fabric.switches
    }
    for tags in (read.tags, None):
        state = state_of_rules(read.fabric, rules, (), tags)
        assert "02:00:00:00:09:01" in state.core.unassigned
        of_tables = verdict_of(state_of_dot1q(read, tags), "pause")
        assert of_tables.acyclic
        assert verdict_of(state, "pause").acyclic


def test_a_lid_that_no_port_has(tmp_path: Path) -> None:
    plan = make_plan(load("ring,4"), "updown")
    subnet = of_plan(plan)
    assert subnet is not None
    before = verdict_of_imported(read_paths([subnet.write(tmp_path / "before")]))
    assert before.acyclic is True
    ports = [plan.fabric.neighbours[f"s{i}"] for i in range(1, 5)]
    onward = [min(of_switch) for of_switch in ports]
    for lft, port in zip(subnet.lfts, onward, strict=True):
        lft[77] = port
        lft[78] = port  # treated alike: not a destination of its own
    verdict = verdict_of_imported(read_paths([subnet.write(tmp_path / "after")]))
    assert verdict.acyclic is False
    assert (verdict.pairs, verdict.undelivered) == (before.pairs, 0)
    named = {step.destination for step in verdict.witnesses if step.destination.startswith("LID")}
    assert named == {"LID 77"}
    step = next(step for step in verdict.witnesses if step.destination == "LID 77")
    words = ["check", str(tmp_path / "after"), "--pair", step.source, step.destination]
    assert step.held.partition("/")[0] in CliRunner().invoke(main, words).output
    del subnet.lfts[2][77], subnet.lfts[2][78]
    assert verdict_of_imported(read_paths([subnet.write(tmp_path / "cut")])).acyclic is True


OWN = Path("tests/data/fabrics/own-address")


def test_frames_to_the_own_address_go_round() -> None:
    """Each host's own are sent round the ring in a VLAN of theirs; all others are delivered."""
    result = CliRunner().invoke(main, ["check", str(OWN), "--json"])
    verdict = json.loads(result.output)
    assert (result.exit_code, verdict["cycle"]) == (1, ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"])
    assert verdict["undelivered"] == 0
    own = [step for step in verdict["witnesses"] if step["source"] == step["destination"]]
    assert own
    for step in own:
        words = ["check", str(OWN), "--pair", step["source"], step["destination"]]
        shown = CliRunner().invoke(main, words).output.splitlines()
        assert shown[0].endswith(": not delivered, it goes round for ever")
        links = [f"{line.split()[0]}" for line in shown[1:]]
        assert (step["held"], step["wanted"]) in pairwise(links)


def test_these_frames_freeze_a_lossless_network() -> None:
    """As the tests' own small network shows, in which frames to other hosts do not freeze."""
    fabric, rules = read_dir(OWN)
    for own, freezes in ((True, True), (False, False)):
        sends = {
            host.name: [
                (mac_value(other.mac), 0x0800)
                for other in fabric.hosts
                for _ in range(100 if own else 30)
                if (other == host) is own
            ]
            for host in fabric.hosts
        }
        for seed in range(5):
            network = LosslessNetwork(fabric, rules, random.Random(seed), 2)  # noqa: S311
            assert network.freezes(sends) is freezes


@pytest.mark.parametrize("more", [[], [Field("eth_type", 0x0800)], [Field("eth_src", 0)]])
def test_one_host_whose_own_frames_come_back(more: list[Field]) -> None:
    """Its switch sends them to the next one, which delivers them: over the same cable."""
    plan = make_plan(load("ring,4"), "updown")
    host = plan.fabric.hosts[0]
    fields = [Field("eth_src", mac_value(host.mac)) if f.name == "eth_src" else f for f in more]
    own = [Field("eth_dst", mac_value(host.mac)), Field("in_port", host.port), *fields]
    rules = dict(compile_rules(plan))
    rows = (*rules[host.switch].rules, Rule(FORWARD, 400, tuple(sorted(own)), (Output(2),)))
    in_order = tuple(sorted(rows, key=lambda rule: rule.order))
    rules[host.switch] = SwitchRules(in_order, rules[host.switch].groups)
    state = state_of_rules(plan.fabric, rules)
    trace = state.trace(host.name, host.name)
    names = [state.channels.name(hop.channel, 0) for hop in trace.hops if hop.channel < 8]
    assert trace.hops[0].channel < 8
    held_then_wanted = {tuple(row[[0, 2]]) for row in state.dependencies}
    walked = [hop.channel for hop in trace.hops if hop.channel < 8]
    assert all(pair in held_then_wanted for pair in pairwise(walked)), names


def test_a_plan_says_nothing_of_what_comes_back() -> None:
    state = state_of_plan(make_plan(load("ring,4"), "updown"))
    with pytest.raises(ValueError, match="own address was not followed"):
        state.trace("h1", "h1")
