"""Configurations of FRR: their routes are those that FRR 8.4.4 installed, or a fact is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.main import main
from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.prove_frr import STORED, computed, differences, read_and_computed
from tests.support.frr_fabrics import CASES, RELAXED, FrrFabric, case, leaf_spine

UNDELIVERED = {
    "policies are required": 2,
    "no-advertise": 1,
    "no-export": 1,
    "prepended number of another": 1,
    "too many prefixes": 2,
    "default routes": 2,
    "static routes by tag": 1,
}
"""The pairs that a case cuts off; others cut none."""


def _judged(folder: Path, by: str = "bgp") -> ImportedVerdict:
    return verdict_of_imported(read_paths([folder], routes_by=by))


@pytest.mark.parametrize("name", CASES)
def test_routes_are_those_of_real_frr(name: str, tmp_path: Path) -> None:
    """``python -m tests.prove_frr --store`` has stored what FRR shows."""
    routes, findings = computed(case(name), tmp_path)
    assert not {**findings.gaps, **findings.problems}
    assert differences(routes, json.loads(STORED.read_text())[name]) == []


@pytest.mark.parametrize("name", CASES)
def test_verdicts_of_the_cases(name: str, tmp_path: Path) -> None:
    verdict = _judged(case(name).write(tmp_path))
    assert verdict.missing == []
    assert verdict.acyclic == (name not in ("policies on some sessions", "loop of static routes"))
    assert verdict.undelivered == UNDELIVERED.get(name, 0)
    assert ", with assumed routes" in verdict.text


def _with(place: str, *statements: str) -> FrrFabric:
    """Return a fabric whose leaf1 has statements: in ``bgp``, ``family`` or ``end``."""
    fabric = leaf_spine()
    getattr(fabric, place)["leaf1"] = [*statements]
    return fabric


@pytest.mark.parametrize(
    ("place", "statement"),
    [
        ("bgp", "neighbor 10.255.0.1 as-override"),
        ("bgp", "neighbor 10.255.0.1 bfd strict"),
        ("bgp", "neighbor 10.255.0.1 update-source lo"),
        ("bgp", "neighbor 10.255.0.1 dont-capability-negotiate"),
        ("bgp", "bgp bestpath med missing-as-worst"),
        ("bgp", "bgp graceful-shutdown"),
        ("bgp", "bgp minimum-holdtime 20"),
        ("family", "neighbor 10.255.0.1 maximum-prefix 5 restart 3"),
        ("family", "neighbor 10.255.0.1 addpath-tx-all-paths"),
        ("family", "maximum-paths 1"),
        ("family", "aggregate-address 192.168.0.0/16 summary-only"),
        ("end", "no ip forwarding"),
        ("end", "ip import-table 10"),
        ("end", "router bgp 65101 view RED"),
        ("end", "vrf RED\n vni 100"),
        ("end", "router ospf"),
        ("end", "ip route 192.168.9.0/24 10.255.0.1 onlink"),
        ("end", "ip route 192.168.9.0/40 10.255.0.1"),
        ("end", "ip route 192.168.9.0/24 swp1"),
        ("end", "ip route 192.168.9.0/24 10.0.0.3"),
        ("end", "segment-routing"),
        ("end", "a statement of FRR 30"),
    ],
)
def test_what_is_not_followed_is_a_missing_fact(place: str, statement: str, tmp_path: Path) -> None:
    verdict = _judged(_with(place, statement).write(tmp_path))
    assert verdict.safe is None
    assert verdict.missing
    assert all("leaf1" in text for text in verdict.missing)


@pytest.mark.parametrize(
    ("place", "statement"),
    [
        ("bgp", "neighbor 10.255.0.1 timers 3 9"),
        ("bgp", "neighbor 10.255.0.1 update-source 10.255.0.0"),
        ("bgp", "neighbor 10.255.0.1 bfd profile fast"),
        ("bgp", "no neighbor 10.255.0.1 capability dynamic"),
        ("bgp", "bgp max-med on-startup 60"),
        ("family", "neighbor 10.255.0.1 maximum-prefix 1 warning-only"),
        ("family", "neighbor 10.255.0.1 maximum-prefix 100 80"),
        ("family", "neighbor 10.255.0.1 soft-reconfiguration inbound"),
        ("end", "log syslog informational"),
        ("end", "ip route 192.168.9.0 255.255.255.0 10.255.0.1"),
        ("end", "ip route 192.168.9.0/24 10.255.0.1 swp1 5 tag 3"),
        ("end", "ip route 192.168.9.0/24 Null0"),
    ],
)
def test_what_changes_no_route(place: str, statement: str, tmp_path: Path) -> None:
    verdict = _judged(_with(place, statement).write(tmp_path))
    assert (verdict.safe, verdict.missing, verdict.undelivered) == (True, [], 0)


@pytest.mark.parametrize(("limit", "ends"), [(1, True), (2, None), (3, None), (100, False)])
def test_one_prefix_too_many_need_not_end_a_session(
    limit: int, ends: bool | None, tmp_path: Path
) -> None:
    """A spine announces three prefixes itself, and passes on others."""
    statement = f"neighbor 10.255.0.1 maximum-prefix {limit}"
    verdict = _judged(_with("family", statement).write(tmp_path))
    named = any("announces more than" in text for text in verdict.missing)
    noted = any(f"ends: maximum-prefix {limit}, and spine1" in text for text in verdict.notes)
    assert (noted, named) == (ends is True, ends is None)


def test_a_bad_line_costs_a_line(tmp_path: Path) -> None:
    fabric = _with("end", "ip route 10.0.0.0/40 10.255.0.1")
    verdict = _judged(fabric.write(tmp_path))
    number = fabric.text("leaf1").split("\n").index("ip route 10.0.0.0/40 10.255.0.1") + 1
    assert verdict.undelivered == 0
    assert len(verdict.missing) == 1
    assert f"line {number}, ip route 10.0.0.0/40" in verdict.missing[0]
    assert "is not a prefix" in verdict.missing[0]


@pytest.mark.parametrize("count", [1, 2])
def test_which_path_is_the_oldest_is_not_guessed(count: int, tmp_path: Path) -> None:
    """Without multipath-relax a leaf takes one of two AS paths, if spines have an AS each."""
    fabric = leaf_spine(one_as=count == 1)
    fabric.relaxed = False
    verdict = _judged(fabric.write(tmp_path))
    assert verdict.safe is (True if count == 1 else None)
    assert any("multipath-relax" in text for text in verdict.missing) == (count == 2)


def test_states_that_depend_on_which_path_is_older_are_unknown(tmp_path: Path) -> None:
    """With a preference and an AS for each spine, spine2 reaches spine1 over either leaf."""
    fabric = leaf_spine(one_as=False)
    fabric.end["leaf2"] = ["route-map P permit 10", " set local-preference 90", "exit"]
    fabric.family["leaf2"] = ["neighbor 10.255.2.1 route-map P in"]
    verdict = _judged(fabric.write(tmp_path))
    assert verdict.safe is None
    assert "which of equal paths is the oldest: routes of leaf2 depend on it" in verdict.missing


@pytest.mark.parametrize(
    ("head", "reached"),
    [
        ("frr version 8.4\nfrr defaults datacenter\n", True),
        ("frr version 7.3\nfrr defaults traditional\n", True),
        ("frr version 7.4\nfrr defaults traditional\n", False),
        ("frr version 10.1.2-dev\n", False),
        ("frr defaults traditional\n", False),
    ],
)
def test_defaults_are_those_of_profile_and_version(
    head: str, reached: bool, tmp_path: Path
) -> None:
    fabric = leaf_spine()
    fabric.head = head
    assert _judged(fabric.write(tmp_path)).undelivered == (0 if reached else 2)


def test_networks_are_checked_by_profile_and_version(tmp_path: Path) -> None:
    for head, announced in (
        ("frr version 7.3\nfrr defaults traditional\n", True),
        ("frr version 7.3\nfrr defaults datacenter\n", False),
        ("frr version 8.4\nfrr defaults datacenter\n", False),
    ):
        fabric = _with("family", "network 172.20.0.0/16")
        fabric.head = head
        folder = tmp_path / head.replace("\n", " ").replace(" ", "-")
        routes, _ = computed(fabric, folder)
        assert ("172.20.0.0/16" in routes["leaf2"]) == announced


@pytest.mark.parametrize("extended", [True, False])
def test_ipv4_routes_by_ipv6_sessions(extended: bool, tmp_path: Path) -> None:
    """Their next hops need RFC 8950, which is negotiated only if both ends say so."""
    folder = leaf_spine().write(tmp_path)
    for file in folder.glob("*/frr.conf"):
        text = re.sub(r"10\.255\.(\d)\.(\d)", r"fc00::\1:\2", file.read_text())
        text = re.sub(r"ip address (fc00\S+)/31", r"ipv6 address \1/127", text)
        more = r"\g<0>\1 capability extended-nexthop\n" * extended
        file.write_text(re.sub(r"( neighbor \S+) remote-as \d+\n", more or r"\g<0>", text))
    verdict = _judged(folder)
    assert verdict.undelivered == 0
    assert (verdict.safe is True) == extended
    assert any("capability extended-nexthop" in text for text in verdict.missing) != extended


@pytest.mark.parametrize(
    ("line", "matters"),
    [("bgpd=yes", False), ("bgpd=no", True), ('frr_profile="datacenter"', True)],
)
def test_daemons_that_are_not_started(line: str, matters: bool, tmp_path: Path) -> None:
    folder = leaf_spine().write(tmp_path)
    more = 'ospfd=no\nvtysh_enable=yes\nzebra_options="  -A 127.0.0.1 -s 90000000"\n'
    (folder / "leaf1" / "daemons").write_text(f"# a comment\nbgpd=yes\n{more}{line}\n")
    verdict = _judged(folder)
    assert (verdict.safe is None) == matters
    assert any("of the file daemons" in text for text in verdict.missing) == matters


# VRFs


def _in_vrf(folder: Path, form: str) -> FrrFabric:
    """Write a fabric whose second spine, and the ports to it, are in VRF RED."""
    fabric = leaf_spine()
    fabric.write(folder)
    for router in fabric.numbers:
        text = fabric.text(router)
        for one in fabric.neighbours(router):
            if "spine2" in (router, one.router):
                text = text.replace(f"interface {one.port}\n", form.format(one.port), 1).replace(
                    f" neighbor {one.address} remote-as {fabric.numbers[one.router]}\n", ""
                )
        speaks = [one for one in fabric.neighbours(router) if "spine2" in (router, one.router)]
        text += f"router bgp {fabric.numbers[router]} vrf RED\n {RELAXED}\n"
        for one in speaks:
            text += f" neighbor {one.address} remote-as {fabric.numbers[one.router]}\n"
        text += (
            " address-family ipv4 unicast\n  redistribute connected\n exit-address-family\nexit\n"
        )
        (folder / router / "frr.conf").write_text(text)
    return fabric


@pytest.mark.parametrize("form", ["interface {} vrf RED\n", "interface {}\n vrf RED\n"])
def test_bgp_of_a_vrf_is_followed_beside_the_default_one(form: str, tmp_path: Path) -> None:
    _in_vrf(tmp_path, form)
    routes, findings = read_and_computed(tmp_path)
    assert findings.gaps == {}
    over = {hop.interface for hop in routes["leaf1"]["192.168.2.0/24"]}
    assert over == {"swp1"}
    beside = {hop.interface for hop in routes["leaf1-RED"]["10.255.3.0/31"]}
    assert beside == {"swp2"}
    assert "192.168.2.0/24" not in routes["leaf1-RED"]
    verdict = _judged(tmp_path)
    assert (verdict.safe, verdict.missing, verdict.switches) == (True, [], 6)


def test_a_loop_in_a_vrf_is_found(tmp_path: Path) -> None:
    _in_vrf(tmp_path, "interface {} vrf RED\n")
    hosts = "interface vlan20 vrf RED\n ip address 192.168.21.1/24\nexit\n"
    for router, route in (
        ("leaf1", "ip route 10.96.0.0/16 10.255.1.1"),
        ("spine2", "ip route 10.96.0.0/16 10.255.1.0"),
    ):
        file = tmp_path / router / "frr.conf"
        more = hosts if router == "leaf1" else ""
        file.write_text(f"{file.read_text()}{more}vrf RED\n {route}\nexit-vrf\n")
    verdict = _judged(tmp_path)
    assert verdict.safe is False
    assert {name.partition(":")[0] for name in verdict.cycle} == {"leaf1-RED", "spine2-RED"}


def test_a_port_that_vrfs_share_is_a_missing_fact(tmp_path: Path) -> None:
    fabric = leaf_spine()
    fabric.end["leaf1"] = ["interface swp1.20 vrf RED", " ip address 10.99.0.1/24", "exit"]
    verdict = _judged(fabric.write(tmp_path))
    assert verdict.safe is None
    assert any("swp1 of leaf1 is in VRF" in text for text in verdict.missing)


def test_a_vrf_that_ifupdown_names_counts_for_addresses_of_frr(tmp_path: Path) -> None:
    folder = leaf_spine().write(tmp_path)
    (folder / "leaf1" / "interfaces").write_text("auto swp1\niface swp1\n    vrf RED\n")
    verdict = _judged(folder)
    assert "VRFs of leaf1 are shown as switches of their own: leaf1-RED" in verdict.notes
    assert verdict.undelivered == 0  # over spine2


# Files


def test_saved_copies_are_not_read(tmp_path: Path) -> None:
    folder = leaf_spine().write(tmp_path)
    present = folder / "leaf1" / "frr.conf"
    for copy in ("frr.conf.sav", "bgpd.conf.sav", "frr.conf.bak", "frr.conf.old"):
        (present.parent / copy).write_text("frr defaults traditional\nrouter bgp 7\n")
    verdict = _judged(folder)
    assert (verdict.safe, verdict.undelivered) == (True, 0)
    assert {file["reason"] for file in verdict.not_read} == {"a backup copy"}
    present.unlink()
    assert _judged(folder).safe is None


def test_a_folder_has_routers_by_their_host_names(tmp_path: Path) -> None:
    fabric = leaf_spine()
    apart = fabric.write(tmp_path / "apart")
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "layer1_topology.json").write_bytes((apart / "layer1_topology.json").read_bytes())
    for number, router in enumerate(fabric.numbers):
        (flat / f"{number}.conf").write_text(fabric.text(router))
    one, other = _judged(apart), _judged(flat)
    assert (other.safe, other.switches, other.max_channel_load) == (True, 4, one.max_channel_load)
    text = (flat / "0.conf").read_text()
    (flat / "0.conf").write_text(text.replace("hostname leaf1\n", ""))
    with pytest.raises(KnotlessError, match=r"0\.conf: no line 'hostname'"):
        _judged(flat)


def _split(folder: Path, text: str) -> dict[str, str]:
    """Write a configuration as files of single daemons; returns their texts."""
    head, _, bgp = text.partition("router bgp")
    start = "frr version 8.4\nfrr defaults datacenter\nhostname leaf1\n"
    texts = {"zebra.conf": head, "bgpd.conf": f"{start}router bgp{bgp}"}
    for name, part in texts.items():
        (folder / name).write_text(part)
    return texts


def test_files_of_single_daemons_are_one_configuration(tmp_path: Path) -> None:
    folder = leaf_spine().write(tmp_path)
    whole = folder / "leaf1" / "frr.conf"
    texts = _split(whole.parent, whole.read_text())
    assert _judged(folder).safe is True  # beside frr.conf, which says the same
    whole.unlink()
    verdict = _judged(folder)
    assert (verdict.safe, verdict.missing, verdict.undelivered) == (True, [], 0)
    (folder / "leaf1" / "bgpd.conf").unlink()
    assert "the BGP configuration of leaf1" in _judged(folder).missing
    (folder / "leaf1" / "etc" / "frr").mkdir(parents=True)
    (folder / "leaf1" / "etc" / "frr" / "bgpd.conf").write_text(texts["bgpd.conf"])
    assert _judged(folder).safe is True


@pytest.mark.parametrize(
    ("old", "new", "daemon"),
    [
        ("remote-as 65000", "remote-as 65009", "bgpd"),
        ("interface swp1\n", "interface swp1\n shutdown\n", "zebra"),
        ("10.255.1.0/31", "10.255.9.0/31", "zebra"),
    ],
)
def test_files_that_contradict_each_other_are_named(
    old: str, new: str, daemon: str, tmp_path: Path
) -> None:
    folder = leaf_spine().write(tmp_path)
    text = (folder / "leaf1" / "frr.conf").read_text()
    (folder / "leaf1" / "running.conf").write_text(text)
    assert _judged(folder).safe is True
    (folder / "leaf1" / "running.conf").write_text(text.replace(old, new))
    with pytest.raises(KnotlessError, match=rf"frr\.conf and .*running\.conf tell {daemon}"):
        _judged(folder)


FOREIGN = {
    "Arista EOS": "! device: leaf1 (DCS-7280CR3, EOS-4.30.1F)\n!\nhostname leaf1\n",
    "Cisco NX-OS": "!Command: show running-config\nversion 9.3(3)\nhostname leaf1\nfeature bgp\n",
    "Cisco IOS XR": "!! IOS XR Configuration 7.3.2\nhostname leaf1\n",
    "Cisco IOS": "version 15.2\nboot-start-marker\nhostname leaf1\n",
    "NVIDIA NVUE": "- header:\n    nvue-api-version: nvue_v1\n- set:\n    system: {}\n",
    "Junos": "set system host-name leaf1\nset protocols bgp group G\n",
    "a router without FRR's marks": "hostname leaf1\n",
}


@pytest.mark.parametrize("system", FOREIGN)
def test_configurations_of_other_systems_are_named(system: str, tmp_path: Path) -> None:
    folder = leaf_spine().write(tmp_path)
    file = folder / "leaf1" / "frr.conf"
    bgp = "router bgp 65101\n   maximum-paths 4 ecmp 4\n   neighbor 10.255.0.1 remote-as 65000\n"
    file.unlink()
    (folder / "leaf1" / "running-config.cfg").write_text(FOREIGN[system] + bgp)
    verdict = _judged(folder)
    assert verdict.safe is None
    assert any(f"the configuration of {system}" in text for text in verdict.missing)
    for router in ("leaf2", "spine1", "spine2"):
        (folder / router / "frr.conf").unlink()
    with pytest.raises(KnotlessError, match=f"the configuration of {system}.*is not read"):
        _judged(folder)


def test_ospf_is_one_line(tmp_path: Path) -> None:
    folder = leaf_spine().write(tmp_path)
    for file in folder.glob("*/frr.conf"):
        text = file.read_text().partition("router bgp")[0].replace("exit\n", " ip ospf area 0\n")
        file.write_text(text + "router ospf\n passive-interface default\n")
    done = CliRunner().invoke(main, ["check", str(folder), "--routes", "bgp"])
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert "OSPF is not followed" in done.output
    missing = [text for text in _judged(folder, "static").missing if "OSPF" in text]
    assert missing == [
        "the routes of OSPF, which is not followed, at leaf1, leaf2, spine1 and 1 more"
    ]


# /etc/network/interfaces


def _interfaces(fabric: FrrFabric, router: str) -> tuple[str, str]:
    """Return the addresses of a router as ifupdown has them, and its configuration without."""
    text, lines = fabric.text(router), ["source-free file", "auto lo", "iface lo inet loopback"]
    kept, name = [], "lo"
    for line in text.split("\n"):
        match line.split():
            case ["interface", name]:
                lines += [f"auto {name}", f"iface {name}"] * (name != "lo")
            case ["ip", "address", address]:
                lines.append(f"    address {address}")
                continue
            case _:
                pass
        kept.append(line)
    return "\n".join(lines[1:]) + "\n", "\n".join(kept)


@pytest.mark.parametrize("place", ["leaf1", "leaf1/etc/network"])
def test_addresses_of_ifupdown(place: str, tmp_path: Path) -> None:
    fabric = leaf_spine()
    folder = fabric.write(tmp_path)
    addresses, rest = _interfaces(fabric, "leaf1")
    (folder / "leaf1" / "frr.conf").write_text(rest)
    assert _judged(folder).safe is None
    (folder / place).mkdir(parents=True, exist_ok=True)
    (folder / place / "interfaces").write_text(addresses)
    verdict = _judged(folder)
    assert (verdict.safe, verdict.missing, verdict.undelivered) == (True, [], 0)


@pytest.mark.parametrize(
    ("option", "missing"),
    [
        ("mtu 9216", None),
        ("alias to spine1", None),
        ("gateway 10.255.0.1", "gateway"),
        ("up ip route add 10.9.0.0/16 via 10.255.0.1", "up ip route"),
        ("source /etc/network/interfaces.d/*", "source"),
        ("address 10.255.0.300/31", "address 10.255.0.300"),
    ],
)
def test_options_of_ifupdown(option: str, missing: str | None, tmp_path: Path) -> None:
    folder = leaf_spine().write(tmp_path)
    (folder / "leaf1" / "interfaces").write_text(f"auto swp1\niface swp1\n    {option}\n")
    verdict = _judged(folder)
    assert (verdict.safe is True) == (missing is None)
    assert missing is None or any(missing in text for text in verdict.missing)


def test_a_link_that_ifupdown_leaves_down(tmp_path: Path) -> None:
    folder = leaf_spine().write(tmp_path)
    (folder / "leaf1" / "interfaces").write_text("auto swp1\niface swp1\n    link-down yes\n")
    verdict = _judged(folder)
    assert (verdict.safe, verdict.missing, verdict.undelivered) == (True, [], 0)
    assert (
        "the BGP session of leaf1 with 10.255.0.1 stays down: swp1 of leaf1 is down"
        in verdict.notes
    )
