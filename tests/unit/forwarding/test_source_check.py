"""Rules that check the source addresses inside of what hosts send."""

from __future__ import annotations

import ipaddress
import random
from dataclasses import replace
from typing import Any

import pytest

from knotless.controller.observed import AdmissionCounters, UnadmittedFrames
from knotless.controller.openflow.elements import emit_match, parse_match
from knotless.forwarding.openflow import ofctl_parser, ofctl_writer
from knotless.forwarding.openflow.compiler import compile_rules, is_source_check
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import (
    ADMISSION,
    COOKIE,
    Field,
    Output,
    Rule,
    SwitchRules,
    match_order,
)
from knotless.forwarding.openflow.vlan_generations import (
    VlanGeneration,
    rules_in,
    without_admission,
)
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.topologies.fabric import Fabric, Host
from knotless.topologies.numbering import mac_value
from knotless.verification.changes.change import Installed
from knotless.verification.changes.planner import between_plans, plan_change
from knotless.verification.checked_plan import CheckedPlan

BROADCAST = 0xFFFFFFFFFFFF
IPV4, ARP, IPV6 = 0x0800, 0x0806, 0x86DD
MODES = ("mac", "arp", "ip")
FAMILY = [
    ("ring,4", {}),
    ("torus,4,4", {}),
    ("mesh,3,3,hosts=2", {"engine": "dor"}),
    ("fattree2,4", {}),
    ("torus,5,5", {}),
    ("ring,4", {"tagging": "host"}),
    ("mesh,2,2,hosts=2", {"tagging": "host", "multicast": {1: ["h1", "h5"]}}),
    ("torus,3,3", {"engine": "updown", "protection": "fast-failover"}),
    ("irregular-a", {"engine": "dl", "vcs": 2}),
    ("lsft,3", {"multicast": {1: ["all"], 2: ["h1", "h2"]}}),
]


def planned(spec: str, options: dict[str, Any], mode: str) -> Plan:
    return make_plan(load(spec), **options, source_check=mode)


def value(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))


def won(rules: SwitchRules, frame: dict[str, int]) -> Rule:
    """Return the rule of admission that counts for a frame; equal priorities must agree."""

    def fits(field: Field) -> bool:
        mask = -1 if field.mask is None else field.mask
        return field.name in frame and (frame[field.name] ^ field.value) & mask == 0

    matching = [r for r in rules.rules if r.table == ADMISSION and all(map(fits, r.match))]
    best = [r for r in matching if r.priority == max(rule.priority for rule in matching)]
    assert len({(r.actions, r.metadata, r.goto) for r in best}) == 1
    return best[0]


def arp(host: Host, to: int, vlan: int, **sender: int) -> dict[str, int]:
    frame = {"in_port": host.port, "eth_src": mac_value(host.mac), "eth_dst": to, "eth_type": ARP}
    claimed = {"arp_sha": mac_value(host.mac), "arp_spa": value(host.ip)}
    return frame | {"vlan_vid": vlan} | claimed | sender


def packet(host: Host, to: int, vlan: int, source: int, eth_type: int = IPV4) -> dict[str, int]:
    frame = {"in_port": host.port, "eth_src": mac_value(host.mac), "eth_dst": to}
    inside = {"ipv4_src": source} if eth_type == IPV4 else {}
    return frame | {"eth_type": eth_type, "vlan_vid": vlan} | inside


def vlans_of(plan: Plan, host: Host, to: int) -> tuple[int, ...]:
    """Return the VLAN fields that what a host sends to an address may have."""
    tags = plan.host_tags()
    if tags is None:
        return 0, 0x1000  # untagged, and with a priority only
    by_mac = {mac_value(mac): vlan for mac, vlan in tags[host.name].items() if mac != "default"}
    return (0x1000 | by_mac.get(to, tags[host.name]["default"]),)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("spec", "options"), FAMILY)
def test_rules_that_are_read_are_the_state(spec: str, options: dict[str, Any], mode: str) -> None:
    checked = CheckedPlan(planned(spec, options, mode))
    plan, rules = checked.plan, checked.rules
    read = state_of_rules(plan.fabric, rules, plan.multicast, plan.host_tags(), any_address=False)
    assert checked.state.core.difference(read.core) is None
    decoded = {name: rules[name] for name in rules}
    again = state_of_rules(
        plan.fabric, decoded, plan.multicast, plan.host_tags(), any_address=False
    )
    assert checked.state.core.difference(again.core) is None
    verdict, before = (
        checked.rules_verdict,
        CheckedPlan(planned(spec, options, "mac")).rules_verdict,
    )
    assert (verdict.acyclic, verdict.undelivered) == (before.acyclic, 0)
    assert list(verdict.problems) == list(before.problems)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("spec", "options"), FAMILY)
def test_a_host_may_only_name_itself(spec: str, options: dict[str, Any], mode: str) -> None:
    plan = planned(spec, options, mode)
    fabric, rules = plan.fabric, compile_rules(plan)
    plain = compile_rules(planned(spec, options, "mac"))
    rng = random.Random(f"{spec}{mode}")  # noqa: S311 - repeatable, not secret
    for host in rng.sample(fabric.hosts, min(6, len(fabric.hosts))):
        held, unchecked = rules[host.switch], plain[host.switch]
        other = rng.choice([each for each in fabric.hosts if each != host])
        receivers = (mac_value(other.mac), BROADCAST)
        sent = [(each, vlan) for each in receivers for vlan in vlans_of(plan, host, each)]
        for to, vlan in sent:
            own, foreign = value(host.ip), value(other.ip)
            honest = [arp(host, to, vlan), arp(host, to, vlan, arp_spa=0)]
            honest += [packet(host, to, vlan, own), packet(host, to, vlan, 0)]
            # IPv6 is not checked.
            honest += [packet(host, to, vlan, 0, IPV6), packet(host, to, vlan, 0, 0x88B5)]
            for frame in honest:
                rule, before = won(held, frame), won(unchecked, frame)
                assert (rule.actions, rule.goto) == (before.actions, before.goto)
                assert rule.goto is not None
            forged_arp = [
                arp(host, to, vlan, arp_spa=foreign),
                arp(host, to, vlan, arp_spa=rng.getrandbits(32) | 1),
                arp(host, to, vlan, arp_sha=mac_value(other.mac)),
                arp(host, to, vlan, arp_sha=mac_value(other.mac), arp_spa=0),
                arp(host, to, vlan, arp_sha=mac_value(other.mac), arp_spa=foreign),
            ]
            forged_ip = [packet(host, to, vlan, foreign), packet(host, to, vlan, own ^ 1)]
            for frame in forged_arp:
                assert (won(held, frame).goto is None) == (mode != "mac")
            for frame in forged_ip:
                assert (won(held, frame).goto is None) == (mode == "ip")
            if mode != "mac" and vlan:
                # Nobody can look behind a second tag.
                for inner in (0x8100, 0x88A8):
                    assert won(held, packet(host, to, vlan, 0, inner)).goto is None
            for frame in (*honest, *forged_arp, *forged_ip):
                wrong_mac = frame | {"eth_src": mac_value(other.mac)}
                assert won(held, wrong_mac).goto is None


def test_addresses_that_are_invented_are_not_checked() -> None:
    fabric = load("ring,4")
    first, second, *more = fabric.hosts
    mixed = replace(fabric, hosts=(replace(first, ip_invented=True), second, *more))
    rules = compile_rules(make_plan(mixed, source_check="ip"))
    assert not any(map(is_source_check, (rule.match for rule in rules[first.switch].rules)))
    forged = arp(first, BROADCAST, 0, arp_spa=value(second.ip))
    assert won(rules[first.switch], forged).goto is not None
    assert won(rules[second.switch], arp(second, BROADCAST, 0, arp_spa=1)).goto is None
    read = state_of_rules(mixed, rules)
    assert not list(read.core.problems)
    unknown = replace(fabric, hosts=tuple(replace(h, ip_invented=True) for h in fabric.hosts))
    checked = compile_rules(make_plan(unknown, source_check="ip"))
    assert checked.is_compiled_alike(compile_rules(make_plan(unknown)))


def test_the_number_of_rules_is_five_or_eight_more_for_each_host() -> None:
    """On torus,4,4 each host has one rule of admission."""
    rules = {mode: compile_rules(planned("torus,4,4", {}, mode)).total for mode in MODES}
    assert rules == {"mac": 403, "arp": 403 + 5 * 16, "ip": 403 + 8 * 16}


def test_the_reader_sees_which_sources_rules_admit() -> None:
    plan = planned("ring,4", {}, "ip")
    rules = dict(compile_rules(plan))
    host = plan.fabric.hosts[0]
    held = rules[host.switch]
    for name, ip in [("ipv4_src", value(host.ip)), ("ipv4_src", 0), ("arp_spa", value(host.ip))]:
        gone = Field(name, ip)
        fewer = tuple(rule for rule in held.rules if gone not in rule.match)
        assert len(fewer) == len(held.rules) - 1
        damaged = rules | {host.switch: SwitchRules(fewer, held.groups)}
        read = state_of_rules(plan.fabric, damaged)
        lost = read.core.difference(CheckedPlan(plan).state.core)
        assert lost is not None, f"nobody sees that {name} {ip} is dropped"
        assert lost[0] == 0


def test_rules_of_others_are_followed_only_where_the_sender_is_known() -> None:
    fabric = load("ring,4")
    host = fabric.hosts[0]
    port, mac = Field("in_port", host.port), Field("eth_src", mac_value(host.mac))
    inside = (Field("eth_type", ARP), Field("arp_spa", value(host.ip)))

    def problems(*fields: Field) -> list[Any]:
        rule = Rule(0, 5, match_order(fields), (Output(2),))
        return list(state_of_rules(fabric, {host.switch: SwitchRules((rule,))}).core.problems)

    assert problems(port, mac, *inside) == []
    for fields in [
        inside,
        (port, *inside),
        (mac, *inside),
        (port, Field("eth_src", 2 << 40, 0xFF << 40), *inside),
        (port, mac, Field("eth_type", ARP), Field("arp_spa", 10 << 24, 0xFF << 24)),
        (Field("eth_type", IPV4), Field("ipv4_src", value(host.ip))),
    ]:
        ((_, text),) = problems(*fields)
        assert "not followed here" in text


@pytest.mark.parametrize("mode", ["arp", "ip"])
def test_rules_survive_text_and_messages(mode: str) -> None:
    for held in compile_rules(planned("mesh,2,2,hosts=2", {}, mode)).values():
        assert ofctl_parser.parse(*ofctl_writer.write(held)) == held
        for rule in held.rules:
            emitted = emit_match(rule.match)
            fields = emitted[4 : int.from_bytes(emitted[2:4], "big")]
            assert parse_match(bytearray(fields)) == rule.match


@pytest.mark.parametrize("options", [{}, {"tagging": "host"}])
def test_another_generation_checks_the_same(options: dict[str, Any]) -> None:
    plan = planned("ring,4", options, "ip")
    rules = compile_rules(plan)
    moved = rules_in(rules, VlanGeneration(1, 0))
    for name in rules:
        before = sum(is_source_check(rule.match) for rule in rules[name].rules)
        after = sum(is_source_check(rule.match) for rule in moved[name].rules)
        assert before == after > 0
    if not options:
        left = without_admission(rules)
        ports = {host.port for host in plan.fabric.hosts}
        assert not any(
            Field("in_port", port) in rule.match and rule.table == ADMISSION
            for rule in left[plan.fabric.hosts[0].switch].rules
            for port in ports
        )


@pytest.mark.parametrize(("before", "after"), [("mac", "ip"), ("ip", "mac"), ("arp", "ip")])
def test_a_running_fabric_changes_its_check_in_proven_steps(before: str, after: str) -> None:
    change = between_plans(planned("torus,4,4", {}, before), planned("torus,4,4", {}, after))
    assert change.tier == 1
    assert not change.dropped


@pytest.mark.parametrize(
    ("spec", "old", "new"),
    [
        ("torus,3,3", {"engine": "dor"}, {"engine": "updown"}),
        ("ring,4", {"engine": "updown"}, {"engine": "updown", "tagging": "host"}),
        ("mesh,2,2,hosts=2", {"engine": "updown", "tagging": "host"}, {"engine": "dor"}),
        ("torus,3,3", {"engine": "updown"}, {"engine": "updown", "protection": "fast-failover"}),
    ],
)
def test_changes_of_routes_have_the_same_steps_with_a_check(
    spec: str, old: dict[str, Any], new: dict[str, Any]
) -> None:
    changes = [between_plans(planned(spec, old, mode), planned(spec, new, mode)) for mode in MODES]
    shown = {(c.tier, len(c.steps), c.count(c.dropped)) for c in changes}
    assert len(shown) == 1


@pytest.mark.parametrize("mode", ["arp", "ip"])
def test_an_address_changes_in_proven_steps(mode: str) -> None:
    """Old rules know the old address, and the host has the new one."""
    fabric = load("ring,4")
    first, *more = fabric.hosts
    moved = replace(fabric, hosts=(replace(first, ip="10.0.77.1"), *more))
    old = make_plan(fabric, "updown", source_check=mode)
    new = make_plan(moved, "updown", source_check=mode)
    before = Installed(moved, compile_rules(old), old.flow_control, None, ())
    change = plan_change(before, new)
    assert (change.tier, change.count(change.dropped)) == (1, 0)


def test_refused_frames_are_counted_by_host() -> None:
    fabric: Fabric = load("mesh,2,1,hosts=3")
    rules = compile_rules(make_plan(fabric, source_check="arp"))["s1"]
    held = [rule for rule in rules.rules if rule.table == ADMISSION and rule.cookie == COOKIE]

    def counted(port: int, forged: int, sent: int) -> AdmissionCounters:
        def frames(rule: Rule) -> int:
            if is_source_check(rule.match):
                of_port = {Field("in_port", port), Field("eth_type", ARP)} <= set(rule.match)
                return forged if of_port else 0
            is_own = Field("eth_src", mac_value(fabric.hosts[0].mac)) in rule.match
            return sent if is_own and "arp_spa" not in {f.name for f in rule.match} else 0

        counters = AdmissionCounters.counted((rule.match, frames(rule)) for rule in held)
        return replace(counters, received={1: sent, 2: forged, 3: 0})

    seen = UnadmittedFrames(fabric)
    seen.see("s1", counted(2, 0, 0), 0.0)
    seen.see("s1", counted(2, 200, 900), 5.0)
    (line,) = seen.problems(5.0)
    assert line.startswith("s1 has dropped 200 frames")
    assert line.endswith("of h2 (port 2)")
    assert seen.total == 200
