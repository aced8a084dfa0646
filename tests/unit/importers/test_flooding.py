"""NORMAL, FLOOD and ALL of Open vSwitch: which ports they name, and when that is not known."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from knotless.base.errors import RuleError
from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support import REPOSITORY

FILES = REPOSITORY / "tests" / "data" / "fabrics"
LINE = FILES / "ovs-normal"
PORTS = "OFPST_PORT_DESC reply (OF1.3) (xid=0x2):\n"


def judged(folder: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths([folder]))


def line(folder: Path) -> Path:
    """Return a copy of the line of three learning switches s1 - s2 - s3, each with a host."""
    return Path(shutil.copytree(LINE, folder / "fabric"))


def ring(folder: Path, actions: str, *, blocked: str = "") -> Path:
    """Write a ring of three switches that do the same with all frames.

    Port 1 has the host, port 2 of s1 is linked to port 3 of s2, and so on. ``blocked`` is what
    dump-ports-desc says of port 3 of s1, and of its other end if it is NO_FLOOD; "none" leaves out
    these files.
    """
    cables = json.loads((FILES / "ovs-table-miss" / "layer1_topology.json").read_text())
    folder.mkdir(parents=True)
    for edge in cables["edges"]:
        for node in edge.values():
            node["interfaceName"] = node["interfaceName"].rpartition("-eth")[2]
    (folder / "cables.json").write_text(json.dumps(cables))
    ends = [(1, 3), (3, 2)] if blocked == "NO_FLOOD" else []
    stp = blocked if blocked.startswith("STP") else "LIVE"
    for number in (1, 2, 3):
        switch = folder / f"s{number}"
        switch.mkdir()
        (switch / "flows").write_text(f" cookie=0x0, table=0, priority=0 actions={actions}\n")
        rows = [f"    1     0  00:00:00:00:00:0{number}    1"]
        (switch / "addresses").write_text(" port  VLAN  MAC                Age\n" + "\n".join(rows))
        if blocked != "none":
            (switch / "ports").write_text(
                PORTS
                + "".join(
                    f" {port}(e{port}): addr:02:00:00:00:00:0{port}\n"
                    f"     config:     {blocked if (number, port) in ends else 0}\n"
                    f"     state:      {stp if (number, port) == (1, 3) else 'LIVE'}\n"
                    for port in (1, 2, 3)
                )
            )
    return folder


def test_a_line_of_learning_switches_is_safe() -> None:
    verdict = judged(LINE)
    assert (verdict.acyclic, verdict.missing, verdict.undelivered) == (True, [], 0)
    assert (verdict.switches, verdict.hosts, verdict.pairs) == (3, 3, 6)


def test_learned_addresses_decide_and_others_are_flooded(tmp_path: Path) -> None:
    folder = line(tmp_path)
    assert judged(folder).max_channel_load == 2
    addresses = folder / "s2" / "addresses"
    rows = addresses.read_text().splitlines()
    addresses.write_text("\n".join(row for row in rows if "00:03" not in row) + "\n")
    verdict = judged(folder)  # frames of h1 for h3 also arrive at h2
    assert (verdict.acyclic, verdict.problems) == (True, ["h1 to h3: the frame arrives at h2, h3"])
    assert verdict.notes == ["s2 has not learned, and floods to, h3"]
    addresses.write_text(addresses.read_text() + "    1     0  00:00:00:00:00:03    1\n")
    assert (
        judged(folder).undelivered == 2
    )  # h1 and h2 to h3: its address is learned at a wrong port


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("addresses", "    2     0  00:00:00:00:00:02", "    2    10  00:00:00:00:00:02", "VLANs"),
        ("addresses", "    2     0  00:00:00:00:00:03", "    1     0  00:00:00:00:00:02", "ports"),
        ("flows", "NORMAL", "push_vlan:0x8100,NORMAL", "after actions that change a frame"),
        ("flows", "priority=0 ", "priority=0,dl_vlan=7 ", "for tagged frames"),
        (
            "flows",
            "priority=0 actions=NORMAL",
            "priority=0 actions=NORMAL\n priority=0,dl_type=0x800 actions=drop",
            "beside another rule of the same priority",
        ),
        (
            "flows",
            "actions=NORMAL",
            "actions=group:1\ngroup_id=1,type=all,bucket=NORMAL",
            "group 1",
        ),
    ],
)
def test_what_normal_does_is_not_known(
    file: str, old: str, new: str, says: str, tmp_path: Path
) -> None:
    folder = line(tmp_path)
    changed = folder / "s1" / file
    assert old in changed.read_text()
    changed.write_text(changed.read_text().replace(old, new))
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert any(
        text.startswith("what a rule of s1 does: ") and says in text for text in verdict.missing
    )


def test_normal_needs_the_addresses_that_were_learned(tmp_path: Path) -> None:
    folder = line(tmp_path)
    (folder / "s2" / "addresses").unlink()
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert verdict.missing[0] == (
        "what a rule of s2 does: NORMAL needs the addresses that were learned: ovs-appctl fdb/show"
    )


def test_a_rule_for_one_address_beside_normal_has_its_priority(tmp_path: Path) -> None:
    """A rule above NORMAL outdoes what was learned, one below does not."""
    folder = line(tmp_path)
    flows = folder / "s2" / "flows"
    text = flows.read_text()
    flows.write_text(f"{text} priority=7,dl_dst=00:00:00:00:00:03 actions=drop\n")
    assert judged(folder).undelivered == 2
    flows.write_text(
        text.replace("priority=0", "priority=7")
        + " priority=6,dl_dst=00:00:00:00:00:03 actions=drop\n"
    )
    assert judged(folder).undelivered == 0


def test_a_loop_of_learning_switches_is_unknown_unless_spanning_tree_cuts_it(
    tmp_path: Path,
) -> None:
    verdict = judged(ring(tmp_path / "loop", "NORMAL"))
    assert verdict.acyclic is None
    assert any("which ports spanning tree blocks" in text for text in verdict.missing)
    verdict = judged(ring(tmp_path / "cut", "NORMAL", blocked="STP_BLOCK"))
    assert (verdict.acyclic, verdict.missing) == (True, [])
    assert "h1 to h3: the frame arrives at h2, h3" in verdict.problems


@pytest.mark.parametrize(
    ("actions", "blocked", "acyclic"),
    [
        ("FLOOD", "", False),
        ("ALL", "", False),
        ("ALL", "NO_FLOOD", False),
        ("ALL", "none", False),
        ("FLOOD", "NO_FLOOD", True),
        ("FLOOD", "none", None),
    ],
)
def test_rules_that_flood_in_a_ring(
    actions: str, blocked: str, acyclic: bool | None, tmp_path: Path
) -> None:
    verdict = judged(ring(tmp_path / "ring", actions, blocked=blocked))
    assert verdict.acyclic is acyclic
    if acyclic is None:
        assert verdict.missing == [
            f"s{n}: which ports are flooded: its dump-ports-desc" for n in (1, 2, 3)
        ]


def test_one_dump_of_all_switches_has_their_ports_and_addresses(tmp_path: Path) -> None:
    """The line of learning switches, in the form that dpctl of Mininet prints."""
    folder = tmp_path / "one"
    folder.mkdir()
    text = "".join(
        f"*** {name} {'-' * 72}\n{(LINE / name / file).read_text()}"
        for file in ("flows", "ports", "addresses")
        for name in ("s1", "s2", "s3")
    )
    (folder / "dump.txt").write_text(text)
    shutil.copy(LINE / "layer1_topology.json", folder)
    verdict = judged(folder)
    assert (verdict.acyclic, verdict.missing, verdict.undelivered) == (True, [], 0)
    assert verdict.notes == []


def test_a_fault_in_one_dump_is_named_with_its_line(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FILES / "ovs-one-dump", tmp_path / "fabric"))
    dump = folder / "dump.txt"
    lines = dump.read_text().splitlines()
    lines[8] += ",resubmit(,2)"
    dump.write_text("\n".join(lines))
    verdict = judged(folder)
    assert verdict.acyclic is None
    (missing,) = (text for text in verdict.missing if text.startswith("what a rule of s2 does: "))
    assert missing.endswith("dump.txt: line 9: action 'resubmit(,2)' is not supported")


def test_a_part_of_one_dump_that_is_nothing_known(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FILES / "ovs-one-dump", tmp_path / "fabric"))
    dump = folder / "dump.txt"
    dump.write_text(f"{dump.read_text()}*** s4 {'-' * 72}\nrx pkts=3\n")
    with pytest.raises(RuleError, match="switch s4: neither rules nor ports nor addresses"):
        read_paths([folder])
