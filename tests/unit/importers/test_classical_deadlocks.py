"""Fabrics known to deadlock, as files that switches produce: each is found, with its packets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.classical_deadlocks import (
    bounce,
    default_ring,
    dual_tor,
    dual_tor_below_uplinks,
    routing_loop,
)
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import leaf_spine

FORMS = ("sonic", "redis", "frr", "text")


def judged(folder: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths([folder]))


@pytest.mark.parametrize("form", FORMS)
def test_the_intact_fabric_is_safe(form: str, tmp_path: Path) -> None:
    verdict = judged(leaf_spine(4, 2).write(tmp_path, form))
    assert verdict.acyclic is True
    assert verdict.vcs == {"3": True, "4": True}
    assert (verdict.pairs, verdict.undelivered) == (12, 0)


@pytest.mark.parametrize("form", FORMS)
def test_paths_that_bounce_after_a_failure(form: str, tmp_path: Path) -> None:
    net = bounce()
    verdict = judged(net.write(tmp_path, form))
    assert verdict.acyclic is False
    assert verdict.undelivered == 0
    assert verdict.vcs == {"3": False, "4": False}
    switches = [name.partition(":")[0] for name in verdict.cycle]
    assert sorted(switches) == ["leaf2", "leaf3", "spine0", "spine1"]
    assert all(name.endswith("/3") for name in verdict.cycle)
    assert {(step.label, step.value) for step in verdict.witnesses} == {("DSCP", 3)}
    for step in verdict.witnesses:
        assert step.source != step.destination


def test_a_bounce_in_a_lossy_priority_is_harmless(tmp_path: Path) -> None:
    net = bounce()
    for qos in net.qos.values():
        for port in qos.ports.values():
            del port["pfc_enable"]
    assert judged(net.write(tmp_path)).acyclic is True


def test_pfc_on_some_links_only(tmp_path: Path) -> None:
    """If one link of the cycle does not pause, what is on it is lost instead."""
    net = bounce()
    net.qos["leaf2"].ports["Ethernet4"]["pfc_enable"] = ""
    verdict = judged(net.write(tmp_path))
    assert verdict.acyclic is True
    assert any("neither pauses nor obeys" in line for line in verdict.problems)


def test_a_routing_loop(tmp_path: Path) -> None:
    verdict = judged(routing_loop().write(tmp_path))
    assert verdict.acyclic is False
    assert verdict.cycle == ["leaf1:Ethernet0/3", "spine0:Ethernet4/3"]
    assert verdict.undelivered > 0
    assert any("goes round for ever" in line for line in verdict.problems)


@pytest.mark.parametrize("remapped", [False, True])
def test_tunnels_between_a_pair_of_switches(remapped: bool, tmp_path: Path) -> None:
    verdict = judged(dual_tor(remapped=remapped).write(tmp_path))
    assert verdict.missing == []
    assert verdict.undelivered == 0
    assert verdict.acyclic is remapped
    assert set(verdict.vcs) == ({"2", "3", "4", "6"} if remapped else {"3", "4"})
    if not remapped:
        assert len(verdict.cycle) == 4
        assert {name.partition(":")[0] for name in verdict.cycle} >= {"leaf0", "leaf1"}


@pytest.mark.parametrize("form", ["sonic", "frr"])
@pytest.mark.parametrize("remapped", [False, True])
def test_what_comes_from_above_bounces_between_a_pair(
    remapped: bool, form: str, tmp_path: Path
) -> None:
    """Nothing but the uplinks can send what bounces; the priorities of tunnels prevent a cycle."""
    net = dual_tor_below_uplinks(remapped=remapped)
    verdict = judged(net.write(tmp_path / "fabric", form))
    assert (verdict.missing, verdict.undelivered) == ([], 0)
    assert verdict.acyclic is remapped
    assert verdict.unread == ["spine0:Ethernet380", "spine1:Ethernet380"]
    assert any("2 ports lead to devices without files" in note for note in verdict.notes)
    sources = {step.source for step in verdict.witnesses}
    assert remapped or sources & {*verdict.unread}
    for step in verdict.witnesses:
        words = ["check", str(tmp_path / "fabric"), "--pair", step.source, step.destination]
        done = CliRunner().invoke(main, words)
        assert step.held.partition("/")[0] in done.output
    net.more["spine0"].pop("DEVICE_NEIGHBOR")
    net.more["spine1"].pop("DEVICE_NEIGHBOR")
    without = judged(net.write(tmp_path / "alone", form))
    assert (without.acyclic, without.missing, without.unread) == (True, [], [])
    assert without.pairs == verdict.pairs


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [2, 4, 7])
def test_default_routes_that_go_round(count: int, form: str, tmp_path: Path) -> None:
    net = default_ring(count)
    verdict = judged(net.write(tmp_path / "ring", form))
    assert verdict.acyclic is False
    assert verdict.cycle == [f"r{i}:Ethernet0/3" for i in range(count)]
    assert "0.0.0.0/0" in {step.destination for step in verdict.witnesses}
    assert (verdict.pairs, verdict.undelivered) == (count * (count - 1), 0)
    net.routes["r0"]["0.0.0.0/0"] = []
    assert judged(net.write(tmp_path / "cut", form)).acyclic is True
    net.routes["r0"]["10.9.0.0/16"] = [("169.254.0.1", "Ethernet0")]
    verdict = judged(net.write(tmp_path / "stale", form))
    assert verdict.acyclic is False
    assert "10.9.0.0/16" in {step.destination for step in verdict.witnesses}


def test_addresses_of_links_end_at_their_routers(tmp_path: Path) -> None:
    """Both ends of a link hold its prefix: packets for it cross the link once and no more."""
    net = default_ring(4)
    for i in range(4):
        del net.routes[f"r{i}"]["0.0.0.0/0"]
        net.routes[f"r{i}"][f"172.16.{i}.0/31"] = [("", "Ethernet0")]
        net.routes[f"r{i}"][f"172.16.{(i - 1) % 4}.0/31"] = [("", "Ethernet4")]
    assert judged(net.write(tmp_path / "own")).acyclic is True
    for i in range(4):
        for other in (i + 2, i + 3):
            routes = net.routes[f"r{other % 4}"]
            routes[f"172.16.{i}.0/31"] = [("169.254.0.1", "Ethernet0")]
    verdict = judged(net.write(tmp_path / "advertised"))
    assert verdict.acyclic is False
    assert all(step.destination.startswith(("172.16.", "r")) for step in verdict.witnesses)


@pytest.mark.parametrize(
    ("address", "links"),
    [
        ("10.0.9.1", ["r1:Ethernet0/3", "r2:Ethernet0/3", "r3:Ethernet0/3", "r0:Ethernet0/3"]),
        ("10.0.3.77", ["r1:Ethernet0/3", "r2:Ethernet0/3"]),
        ("10.0.0.0/24", ["r1:Ethernet4/3"]),
    ],
)
def test_the_path_to_an_address(address: str, links: list[str], tmp_path: Path) -> None:
    folder = str(default_ring(4).write(tmp_path))
    words = ["check", folder, "--pair", "r1-Vlan10", address, "--json"]
    answer = json.loads(CliRunner().invoke(main, words).output)["links"]
    assert [link["link"] for link in answer][: len(links)] == links


def test_failures_of_a_fabric_with_default_routes(tmp_path: Path) -> None:
    """What goes round without failures does so until a link of the ring fails."""
    folder = str(default_ring(4).write(tmp_path))
    done = CliRunner().invoke(
        main, ["check", folder, "--failures", "1", "--react", "static", "--json"]
    )
    answer = json.loads(done.output)
    assert answer["acyclic"] is False
    ways = {tuple(row["failed"]): row["acyclic"] for row in answer["failures"]}
    assert any(acyclic is True for acyclic in ways.values())


def test_servers_whose_switch_is_not_known_are_tried_with_both(tmp_path: Path) -> None:
    net = dual_tor(remapped=False)
    for tables in net.more.values():
        for cable in tables["MUX_CABLE"].values():
            cable["state"] = "auto"
    verdict = judged(net.write(tmp_path))
    assert verdict.acyclic is False
    assert any("both are tried" in note for note in verdict.notes)


def test_a_peer_without_files_is_named(tmp_path: Path) -> None:
    net = dual_tor(remapped=False)
    net.more["leaf0"]["PEER_SWITCH"]["leaf1"]["address_ipv4"] = "10.9.0.77"
    verdict = judged(net.write(tmp_path))
    assert verdict.acyclic is None
    assert verdict.undelivered > 0


def _without(net: RouterNet, folder: Path, *patterns: str) -> ImportedVerdict:
    net.write(folder)
    for file in (file for pattern in patterns for file in folder.glob(pattern)):
        file.unlink()
    return judged(folder)


def test_without_settings_of_one_switch_all_packets_are_taken_to_be_lossless(
    tmp_path: Path,
) -> None:
    """A fabric that is safe then is safe under any settings; a cycle is only possible."""
    safe = _without(leaf_spine(3, 2), tmp_path / "safe", "leaf0/config_db.json")
    assert safe.acyclic is True
    assert any("no PORT_QOS_MAP of leaf0" in note for note in safe.notes)
    doubtful = _without(bounce(), tmp_path / "bounce", "leaf0/config_db.json")
    assert doubtful.acyclic is None
    assert len(doubtful.cycle) == 4
    assert "PORT_QOS_MAP of leaf0" in doubtful.missing[0]
    assert "possible: " in doubtful.text


def test_without_any_settings_the_verdict_is_for_pause(tmp_path: Path) -> None:
    for net, acyclic in ((leaf_spine(3, 2), True), (bounce(), False)):
        verdict = _without(net, tmp_path / net.routers[0] / str(acyclic), "*/config_db.json")
        assert (verdict.acyclic, verdict.flow_control) == (acyclic, "pause")
        assert any("all links are taken to PAUSE" in note for note in verdict.notes)


def test_a_router_without_files_or_routes_makes_the_verdict_unknown(tmp_path: Path) -> None:
    net = leaf_spine(3, 2)
    net.write(tmp_path)
    for file in (tmp_path / "spine1").iterdir():
        file.unlink()
    verdict = judged(tmp_path)
    assert verdict.acyclic is None
    assert verdict.missing[0] == "the files of spine1"
    (tmp_path / "spine0" / "appl_db.json").write_text("{}")
    assert "the routes of spine0" in judged(tmp_path).missing


def test_loopback_addresses_stand_for_hosts_that_are_not_known(tmp_path: Path) -> None:
    for name, net, acyclic in (("safe", leaf_spine(4, 2), True), ("bounce", bounce(), False)):
        for routes in net.routes.values():
            for prefix, hops in routes.items():
                routes[prefix] = [("", "lo")] if hops == [("", "Vlan10")] else hops
        net.hosts.clear()
        verdict = judged(net.write(tmp_path / name, "frr"))
        assert verdict.acyclic is acyclic
        assert (verdict.pairs, verdict.undelivered) == (12, 0)
        assert any("loopback addresses are taken" in note for note in verdict.notes)


def test_a_dump_without_a_router_s_own_networks_is_not_whole(tmp_path: Path) -> None:
    net = leaf_spine(3, 2)
    net.more["leaf1"] = {"VLAN_INTERFACE": {"Vlan10|2001:db8::1/64": {}}}
    verdict = judged(net.write(tmp_path / "6"))
    assert verdict.missing == ["all IPv6 routes of leaf1: those known lack its own 2001:db8::/64"]
    net.more.clear()
    del net.routes["leaf2"]["10.2.0.0/24"]
    verdict = judged(net.write(tmp_path / "4"))
    assert verdict.acyclic is None
    assert verdict.missing == ["all IPv4 routes of leaf2: those known lack its own 10.2.0.0/24"]


def _edit(folder: Path, router: str, table: str, rows: dict[str, dict[str, str]]) -> None:
    file = folder / router / "config_db.json"
    values = json.loads(file.read_text())
    values.setdefault(table, {}).update(rows)
    file.write_text(json.dumps(values))


@pytest.mark.parametrize(
    ("table", "rows", "named"),
    [
        ("VNET_ROUTE", {"a": {}}, "what the table VNET_ROUTE of leaf1 does: it forwards"),
        ("VRF", {"Vrf1": {"vni": "3000"}}, "what vni or fallback of VRF Vrf1 of leaf1"),
        ("NAT_GLOBAL", {"Values": {"admin_mode": "enabled"}}, "what NAT_GLOBAL of leaf1"),
        ("POLICY_BINDING_TABLE", {"Ethernet0": {}}, "the policy of Ethernet0 of leaf1"),
        ("ACL_RULE", {"T|R": {"PACKET_ACTION": "REDIRECT:Ethernet0"}}, "the redirection"),
        ("PORT_QOS_MAP", {"Ethernet0": {"tc_to_dot1p_map": "X"}}, "what tc_to_dot1p_map of"),
        ("PORT_QOS_MAP", {"Ethernet0": {"tc_to_dscp_map": "X"}}, "TC_TO_DSCP_MAP|X of leaf1"),
        ("PORT_QOS_MAP", {"Ethernet0": {"dscp_to_tc_map": "X"}}, "DSCP_TO_TC_MAP|X of leaf1"),
    ],
)
def test_what_could_matter_is_named(
    table: str, rows: dict[str, dict[str, str]], named: str, tmp_path: Path
) -> None:
    leaf_spine(3, 2).write(tmp_path)
    _edit(tmp_path, "leaf1", table, rows)
    verdict = judged(tmp_path)
    assert verdict.acyclic is None
    assert any(named in text for text in verdict.missing)


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("NAT_GLOBAL", {"Values": {"admin_mode": "disabled"}}),
        ("POLICY_BINDING_TABLE", {"CtrlPlane": {"CONTROL_INGRESS_POLICY": "oob"}}),
        ("POLICY_TABLE", {"oob": {}}),
        ("ACL_RULE", {"T|R": {"PACKET_ACTION": "DROP", "PRIORITY": "1"}}),
        ("SYSLOG_SERVER", {"10.0.0.1": {}}),
    ],
)
def test_what_cannot_matter_does_not_change_the_verdict(
    table: str, rows: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    leaf_spine(3, 2).write(tmp_path)
    _edit(tmp_path, "leaf1", table, rows)
    verdict = judged(tmp_path)
    assert (verdict.acyclic, verdict.missing) == (True, [])


def test_the_command_prints_the_verdict_and_the_packets(tmp_path: Path) -> None:
    folder = bounce().write(tmp_path / "clos")
    done = CliRunner().invoke(main, ["check", str(folder)])
    assert done.exit_code == 1
    assert ": CAN DEADLOCK under PFC\n" in done.output
    assert "with DSCP 3 holds" in done.output
    done = CliRunner().invoke(main, ["check", str(folder), "--json"])
    answer = json.loads(done.output)
    assert {step["dscp"] for step in answer["witnesses"]} == {3}
    step = answer["witnesses"][0]
    words = ["check", str(folder), "--pair", step["source"], step["destination"]]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    assert step["held"].partition("/")[0] in done.output
    done = CliRunner().invoke(main, ["check", str(leaf_spine(2, 2).write(tmp_path / "safe"))])
    assert done.exit_code == 0
    assert "cannot deadlock under PFC" in done.output


def test_the_path_of_a_packet_has_its_priority_and_dscp(tmp_path: Path) -> None:
    """The class of what comes down is sent up again with DSCP 2, which has priority group 2."""
    net = bounce()
    qos = net.qos["leaf2"]
    qos.maps["TC_TO_DSCP_MAP"] = {"UP": {tc: 2 if tc == 3 else tc for tc in range(8)}}
    for router in net.routers:
        net.qos[router].maps["DSCP_TO_TC_MAP"]["AZURE"][2] = 2
        net.qos[router].maps["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"][2] = 2
    for port in qos.ports.values():
        port["tc_to_dscp_map"] = "UP"
    folder = str(net.write(tmp_path))
    words = ["check", folder, "--pair", "leaf0-Vlan10", "leaf1-Vlan10", "--json"]
    answer = json.loads(CliRunner().invoke(main, words).output)["links"]
    links = {link["link"]: link["dscp"] for link in answer}
    assert links["leaf0:Ethernet4/3"] == 3
    assert links["leaf2:Ethernet0/2"] == 2
