"""Mistakes in tables are found and named; invalid files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.forwarding.dot1q.files import read_folder
from knotless.forwarding.dot1q.model import L2Fabric, L2Port, L2Switch
from knotless.forwarding.dot1q.state import state_of_dot1q
from knotless.topologies import load
from knotless.verification.check import Verdict, verdict_of
from tests.support.dot1q_exports import export_to, verdicts_of

Values = dict[str, Any]


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """s1 to s4 with a host each on port 1, s(i+1) on port 2 and s(i-1) on port 3."""
    export_to(tmp_path, "ring,4 --engine prefix")
    return tmp_path


def change(folder: Path, name: str, edit: Callable[[Values], None]) -> Verdict:
    file = folder / f"{name}.json"
    values = json.loads(file.read_text())
    edit(values)
    file.write_text(json.dumps(values))
    return verdicts_of(read_folder(folder))["untagged"]


def test_an_address_that_leads_elsewhere(ring: Path) -> None:
    def edit(values: Values) -> None:
        for entry in values["macs"]:
            if entry["mac"] == "02:00:00:00:01:01":
                entry["port"] = 3

    verdict = change(ring, "s1", edit)
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (3, 0)
    assert verdict.problems[0] == "h2 to h1: the frame arrives at h4"


def test_an_address_that_is_missing_floods_and_others_get_a_copy(ring: Path) -> None:
    verdict = change(ring, "s1", lambda values: values["macs"].clear())
    assert verdict.undelivered > 0
    assert verdict.broadcasts_undelivered == 0
    assert "h4 to h1: the frame arrives at h1, h2" in verdict.problems


def test_a_link_outside_its_vlan(ring: Path) -> None:
    def edit(values: Values) -> None:
        for port in values["ports"]:
            port["tagged"] = []

    verdict = change(ring, "s2", edit)
    # h2 with all others, and h1 with h3, on whose way it is.
    assert verdict.broadcasts_undelivered == verdict.undelivered == 8


def test_a_frame_that_is_delivered_with_a_tag(ring: Path) -> None:
    def edit(values: Values) -> None:
        host = values["ports"][0]
        host["untagged"], host["tagged"] = [], host["untagged"]

    verdict = change(ring, "s3", edit)
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (3, 3)


def test_a_vlan_with_a_loop_is_found_and_named(ring: Path) -> None:
    """The channels of the loop also depend on each other."""

    def edit(values: Values) -> None:
        for port in values["ports"][1:]:
            port["tagged"] = values["vlans"]

    for name in ("s1", "s2", "s3"):
        change(ring, name, edit)
    verdict = change(ring, "s4", edit)
    # Everybody gets too many copies of each broadcast, its sender too.
    assert verdict.broadcasts_undelivered == 16
    assert "a broadcast of h1 goes round for ever" in verdict.problems
    assert verdict.cycle == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]


def test_tagged_and_untagged_frames_wait_for_each_other() -> None:
    """VLAN 2 lacks one link of a ring, VLAN 3 another: only both together form a cycle."""
    fabric = load("ring,4")
    members = {"s1": ([2, 3], [3]), "s2": ([2], [2, 3]), "s3": ([2, 3], [2]), "s4": ([3], [2, 3])}
    switches = tuple(
        L2Switch(
            name,
            (L2Port(1, 2, (2, 3), ()), L2Port(2, None, (), (*to,)), L2Port(3, None, (), (*fro,))),
            {},
        )
        for name, (to, fro) in members.items()
    )
    tags = {host.name: {"default": 3} for host in fabric.hosts}
    exported = L2Fabric(fabric, switches, tags)
    verdicts = verdicts_of(exported)
    assert {how: v.broadcasts_undelivered for how, v in verdicts.items()} == {
        "tagged": 0,
        "untagged": 0,
    }
    assert verdict_of(state_of_dot1q(exported, tags), "pause").acyclic
    assert verdicts["untagged"].acyclic
    assert verdicts["tagged"].cycle == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert len(verdicts["tagged"].witnesses) == 4


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda v: v.update(switch="s2"), "s1.json: must be an object with 'switch': 's1'"),
        (lambda v: v.update(ports=3), "s1.json: 'ports' must be a list of objects"),
        (lambda v: v["ports"].pop(), r"s1.json: has the ports \[1, 2\], but .* \[1, 2, 3\]"),
        (lambda v: v["ports"][1].update(peer="s3:3"), "port 2: leads to 's3:3', .* to 's2:3'"),
        (lambda v: v["ports"][0].update(pvid=4095), "'pvid' must be a number from 1 to 4094"),
        (lambda v: v["ports"][0].update(pvid=9), "port 1: is not a member of its PVID 9"),
        (lambda v: v["ports"][0].update(tagged=[2]), "port 1: is a member of a VLAN twice"),
        (lambda v: v["macs"][0].update(port=9), "is at port 9, which does not exist"),
        (lambda v: v["macs"][0].update(mac="x"), "'x' is not a MAC address"),
        (
            lambda v: v["macs"][0].update(mac="03:00:00:00:00:01"),
            "03:00:00:00:00:01 is the address of a group",
        ),
        (lambda v: v["macs"].append({**v["macs"][0], "port": 2}), "is at two ports"),
    ],
)
def test_invalid_files_are_refused(ring: Path, edit: Callable[[Values], None], says: str) -> None:
    with pytest.raises(KnotlessError, match=says):
        change(ring, "s1", edit)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("stp_state 0", "stp_state 1", "s1.bridge: stp_state must be set to 0"),
        ("vlan_filtering 1 ", "", "s1.bridge: vlan_filtering must be set to 1"),
        ("link set dev s1-eth2 learning off\n", "", "s1.bridge: port 2 learns addresses"),
        ("link set dev s1-eth2 up\n", "", "s1.bridge: port 2 is never brought up"),
        ("learning off", "guard on", "line 6: unsupported command: 'bridge link set"),
        ("dev s1-eth2 vid", "dev s2-eth2 vid", "the ports of s1 are s1-ethN, not 's2-eth2'"),
        (
            "fdb replace",
            "fdb replace 02:00:00:00:00:09 dev s1-eth2 master static vlan 9\nfdb replace",
            "port 2 is not in VLAN 9: Linux refuses 02:00:00:00:00:09",
        ),
        ("vid 1 self", "vid 1 self\nvlan add dev s1-eth1 vid 4095", "a VLAN is 1 to 4094"),
        ("bridge -batch", "ip link set dev s1-eth2 up\nbridge -batch", "line 6: the bridge must"),
        ("ip link set dev s1 down\n", "", "line 2: the bridge must be down first"),
        ("\nEND\nip", "\nip", "line 27: unsupported command"),
    ],
)
def test_unsupported_or_changed_scripts_are_refused(
    ring: Path, old: str, new: str, says: str
) -> None:
    script = ring / "s1.bridge"
    text = script.read_text()
    assert old in text
    script.write_text(text.replace(old, new))
    with pytest.raises(KnotlessError, match=says):
        read_folder(ring, ".bridge")


def test_a_script_that_leaves_the_default_vlan_as_it_is(ring: Path) -> None:
    """A new bridge has all ports in VLAN 1, untagged, which closes the ring."""
    for number in range(1, 5):
        script = ring / f"s{number}.bridge"
        lines = script.read_text().splitlines()
        kept = [line for line in lines if not line.startswith("vlan del dev s") or "self" in line]
        script.write_text("\n".join(kept) + "\n")
    ports = read_folder(ring, ".bridge").switches[0].ports
    assert [(port.pvid, 1 in port.untagged) for port in ports] == [(2, True), (1, True), (1, True)]


def test_files_that_are_missing(ring: Path) -> None:
    (ring / "s3.json").unlink()
    with pytest.raises(KnotlessError, match=r"s3\.json is missing"):
        read_folder(ring)
    (ring / "fabric.json").unlink()
    with pytest.raises(KnotlessError, match=r"fabric\.json is missing"):
        read_folder(ring)
