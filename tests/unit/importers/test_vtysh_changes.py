"""Lines for vtysh before they are typed: what they make of a configuration, and of a fabric."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.base.errors import RuleError
from knotless.cli.main import main
from knotless.importers.routers.vtysh_changes import changed_configuration
from tests.support import REPOSITORY

CLOS = REPOSITORY / "tests" / "data" / "fabrics" / "clos-frr"
CONFIG = """frr version 8.4.4
hostname r1
ip route 10.0.0.0/8 10.1.1.1 20
ip prefix-list P seq 5 permit 10.0.0.0/8 le 24
ip prefix-list P seq 10 permit any
!
interface eth0
 ip address 10.1.1.0/31
 shutdown
exit
!
vrf red
 ip route 10.0.0.0/8 10.2.2.2
exit-vrf
!
router bgp 65001
 no bgp ebgp-requires-policy
 neighbor spines peer-group
 neighbor spines remote-as external
 neighbor 10.1.1.1 peer-group spines
 neighbor 10.3.3.3 remote-as 65003
 !
 address-family ipv4 unicast
  network 10.9.0.0/16
  neighbor 10.3.3.3 route-map M in
 exit-address-family
exit
!
route-map M permit 10
 match ip address prefix-list P
 set metric 50
exit
!
line vty
!
"""


@pytest.mark.parametrize(
    ("change", "gone", "new", "undecided"),
    [
        (
            "conf t\nip route 10.4.0.0/16 10.1.1.1\nend\nwrite memory",
            [],
            ["ip route 10.4.0.0/16 10.1.1.1"],
            ["ip route 10.4.0.0/16 10.1.1.1"],
        ),
        (
            "no  ip route 10.0.0.0/8 10.1.1.1 20",
            ["ip route 10.0.0.0/8 10.1.1.1 20"],
            [],
            ["no ip route 10.0.0.0/8 10.1.1.1 20"],
        ),
        (
            "vrf red\nno ip route 10.0.0.0/8 10.2.2.2",
            [" ip route 10.0.0.0/8 10.2.2.2"],
            [],
            ["no ip route 10.0.0.0/8 10.2.2.2"],
        ),
        ("interface eth0\nno shutdown", [" shutdown"], [" no shutdown"], ["no shutdown"]),
        ("interface eth0\ndescription up", [], [" description up"], []),
        ("interface eth9\ndescription x", [], ["interface eth9", " description x", "exit"], []),
        ("log syslog\n! a comment\nline vty\nexec-timeout 0 0", [], ["log syslog"], []),
        (
            "router bgp 65001\nbgp ebgp-requires-policy",
            [" no bgp ebgp-requires-policy"],
            [" bgp ebgp-requires-policy"],
            ["bgp ebgp-requires-policy"],
        ),
        (
            "router bgp 65001\nno neighbor 10.3.3.3",
            [" neighbor 10.3.3.3 remote-as 65003", "  neighbor 10.3.3.3 route-map M in"],
            [],
            ["no neighbor 10.3.3.3"],
        ),
        (
            "router bgp 65001\naddress-family ipv4\nno network 10.9.0.0/16\nnetwork 10.8.0.0/16",
            ["  network 10.9.0.0/16"],
            ["  network 10.8.0.0/16"],
            ["no network 10.9.0.0/16", "network 10.8.0.0/16"],
        ),
        (
            "router bgp 65001\naddress-family ipv6 unicast\nnetwork 2001:db8::/32\n"
            "ip route ::/0 ::1",
            [],
            [
                *(" address-family ipv6 unicast", "  network 2001:db8::/32"),
                *(" exit-address-family", "ip route ::/0 ::1"),
            ],
            ["address-family ipv6 unicast", "network 2001:db8::/32", "ip route ::/0 ::1"],
        ),
        (
            "route-map M permit 10\nno set metric 50\nset metric 60",
            [" set metric 50"],
            [" set metric 60"],
            ["no set metric 50", "set metric 60"],
        ),
        (
            "no route-map M",
            ["route-map M permit 10", " match ip address prefix-list P", " set metric 50", "exit"],
            [],
            ["no route-map M"],
        ),
        (
            "no ip prefix-list P",
            [
                "ip prefix-list P seq 5 permit 10.0.0.0/8 le 24",
                "ip prefix-list P seq 10 permit any",
            ],
            [],
            ["no ip prefix-list P"],
        ),
        ("interface eth0\nshutdown\nexit\nhostname r1", [], [], []),
    ],
)
def test_lines_change_the_configuration(
    change: str, gone: list[str], new: list[str], undecided: list[str]
) -> None:
    text, decisive = changed_configuration(CONFIG, change)
    before, after = CONFIG.splitlines(), text.splitlines()
    for line in gone:
        before.remove(line)
    for line in new:
        after.remove(line)
    if "line vty" in change:
        after.remove(" exec-timeout 0 0")
    assert sorted(before) == sorted(after)
    assert decisive == undecided


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("", "there is no line for vtysh"),
        ("show ip route", "line 1, 'show ip route': it is no statement of a configuration"),
        ("\nno ip route 10.0.0.0/8 10.1.1.1", "to remove; did you mean 'ip route 10.0.0.0/8 10.1"),
        ("no ip route 10.0.0.0/8", "there is no 'ip route 10.0.0.0/8' to remove"),
        ("ip route 10.0.0.0/8 10.1.1.1", "there is 'ip route 10.0.0.0/8 10.1.1.1 20': remove it"),
        ("ip prefix-list P seq 5 deny any", "remove it first, with 'no ip prefix-list P seq 5"),
        ("ip prefix-list P deny any", "say where in the list it is, with 'seq NUMBER'"),
        ("route-map M permit 10\nset metric 60", "line 2, 'set metric 60': there is 'set metric"),
        ("router bgp 65001\nno neighbor spines", "10.1.1.1 is a member of it: remove that first"),
        ("router bgp 65001\nno neighbor 10.3.3.3 remote-as 65003", "removes more than this line"),
        ("router bgp 65001\nneighbor 10.1.1.1 peer-group leaves", "remove it first"),
        ("router bgp 65001\nno neighbor 10.7.7.7", "there is no 'neighbor 10.7.7.7' to remove"),
        ("no interface eth0", "there is no 'interface eth0' to remove"),
    ],
)
def test_lines_that_do_not_apply_say_why(change: str, reason: str) -> None:
    with pytest.raises(RuleError) as raised:
        changed_configuration(CONFIG, change)
    assert reason in str(raised.value)


VALLEYS = {  # Two valleys that close a cycle over both spines.
    "spine1": "ip route 192.168.3.0/24 10.0.0.4",
    "leaf2": "ip route 192.168.3.0/24 10.0.0.7",
    "spine2": "ip route 192.168.4.0/24 10.0.0.2",
    "leaf1": "ip route 192.168.4.0/24 10.0.0.1",
}


def check(folder: Path, changes: dict[str, str], *options: str) -> Result:
    words = ["check", str(CLOS), *options]
    for router, lines in changes.items():
        file = folder / f"{router}.vtysh"
        file.write_text(f"configure terminal\n{lines}\n")
        words += ["--patch", f"{router}={file}"]
    return CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")


@pytest.mark.parametrize(
    ("routes", "changes", "safe", "ok", "named"),
    [
        # Beside dumped routes.
        ((), {"leaf1": "router bgp 65101\n neighbor 10.0.0.1 description up"}, True, True, ""),
        ((), {"leaf1": "log syslog", "leaf2": "line vty\n exec-timeout 0 0"}, True, True, ""),
        ((), {"leaf1": "interface lo\n description x"}, True, True, ""),
        ((), VALLEYS, None, False, "the change of ip route 192.168.4.0/24 10.0.0.1 (--routes bgp"),
        ((), {"leaf1": "interface Ethernet0\n ip ospf cost 5"}, None, False, "ip ospf cost 5"),
        ((), {"leaf1": "router bgp 65101\n timers bgp 1 3"}, None, False, "timers bgp 1 3"),
        # With computed routes.
        (("--routes", "bgp"), VALLEYS, False, False, "CAN DEADLOCK"),
        (("--routes", "bgp"), {"spine1": VALLEYS["spine1"]}, False, False, "CAN DEADLOCK"),
        (("--routes", "bgp"), {"leaf1": "router bgp 65101\n timers bgp 1 3"}, True, True, ""),
        (
            ("--routes", "bgp"),
            {"leaf1": "router bgp 65101\n no neighbor 10.0.0.1"},
            True,
            True,
            "cannot deadlock",
        ),
        (
            ("--routes", "bgp"),
            {"leaf1": "router bgp 65101\n neighbor 10.0.0.1 unheard-of 5"},
            None,
            False,
            "unheard-of 5",
        ),
    ],
)
def test_verdicts_before_and_after_lines_for_vtysh(
    tmp_path: Path,
    routes: tuple[str, ...],
    changes: dict[str, str],
    safe: bool | None,
    ok: bool,
    named: str,
) -> None:
    done = check(tmp_path, changes, *routes, "--json")
    values = json.loads(done.stdout)
    assert (values["before"]["safe"], values["safe"]) == (True, safe), done.stdout
    assert done.exit_code == (0 if ok else 1)
    assert named in check(tmp_path, changes, *routes).stdout


def test_lines_that_do_not_apply_name_file_and_line(tmp_path: Path) -> None:
    done = check(tmp_path, {"leaf1": "no ip route 10.0.0.0/8 10.1.1.1"})
    assert (done.exit_code, done.stdout) == (2, "")
    assert "leaf1.vtysh: leaf1: line 2, 'no ip route 10.0.0.0/8 10.1.1.1': there is" in done.stderr
    assert done.stderr.count("\n") == 1
