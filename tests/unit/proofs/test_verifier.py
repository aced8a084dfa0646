"""What ``knotless-verify`` accepts, what it refuses, and what it says then."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.proof_trials import with_files_of
from tests.support.proofs import (
    BUILT,
    Judgement,
    files_of_plan,
    judge,
    proof_of,
    proof_of_product,
    run,
    write_rules,
)

pytestmark = BUILT

RING = files_of_plan("ring,4", engine="updown")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_rules(tmp_path / "rules", RING)


def edited(folder: Path, name: str, old: str, new: str) -> None:
    """Replace the first occurrence of a text in a file."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def edited_json(folder: Path, kind: str, **values: Any) -> None:
    """Set members of the first item of a list of the fabric."""
    fabric = json.loads((folder / "fabric.json").read_text())
    fabric[kind][0] |= values
    (folder / "fabric.json").write_text(json.dumps(fabric))


@pytest.mark.parametrize(
    ("spec", "choices", "condition"),
    [
        ("ring,4", {"engine": "updown"}, "under PAUSE"),
        ("torus,5,5", {"engine": "dor"}, "under PFC"),
        ("fattree2,4", {"engine": "fattree"}, "under PAUSE"),
        ("lsft,3", {"engine": "lsft"}, "under PAUSE"),
        ("dragonfly,a=4,h=2,p=2", {"engine": "dragonfly"}, "under PFC"),
        ("random,16,degree=3,hosts=1,seed=3", {"engine": "dfsssp"}, "under PFC"),
        ("mesh,1,1,hosts=2", {"engine": "updown"}, "under PAUSE"),
    ],
)
def test_plans_are_accepted_with_the_theorem_and_what_it_assumes(
    tmp_path: Path, spec: str, choices: dict[str, Any], condition: str
) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan(spec, **choices))
    judgement = judge(folder, proof_of_product(folder))
    assert judgement.accepted, judgement.text
    assert judgement.text.startswith(f"accepted: the fabric cannot deadlock {condition}\n")
    rules = sum(len(file.read_text().splitlines()) for file in folder.glob("*.flows"))
    assert f", {rules} rules in " in judgement.text
    assert "check_all_sound" in judgement.text
    assert "\nAssumed:\n" in judgement.text


def test_what_can_deadlock_is_refused_with_the_rule_and_both_queues(tmp_path: Path) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan("ring,4", engine="minimal"))
    judgement = judge(folder, proof_of(folder))
    assert judgement.status == 1
    found = re.search(
        r"frames to (\S+).* from h\d: (s\d)\.flows:(\d+): a frame in s\d:\d/0 \(rank \d\) can wait"
        r" for (s\d):(\d)/0 \(rank \d\)",
        judgement.text,
    )
    assert found, judgement
    rule = (folder / f"{found[2]}.flows").read_text().splitlines()[int(found[3]) - 1]
    assert f"output:{found[5]}" in rule or "group:" in rule
    assert found[2] == found[4]


def test_a_rank_is_written_with_the_lowest_priority_of_its_queue(tmp_path: Path) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan("mesh,3,2"))
    proof = proof_of(folder)
    assert judge(folder, proof).accepted
    other = re.sub(r"^(rank s\d:\d)/0", r"\1/6", proof, count=1, flags=re.MULTILINE)
    assert other != proof
    judgement = judge(folder, other)
    assert judgement.status == 1
    assert "/6: not the lowest priority of its queue" in judgement.text


def damaged_and_judged(folder: Path, name: str, old: str, new: str) -> Judgement:
    """Change a file, and judge it with the ranks and classes of the intact folder."""
    intact = proof_of(folder)
    edited(folder, name, old, new)
    return judge(folder, with_files_of(intact, folder))


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        (
            "s2.flows",
            "metadata=0x1,vlan_vid=0x1000/0x1000 actions=pop_vlan,output:1",
            "metadata=0x1,vlan_vid=0x1000/0x1000 actions=drop",
            r"the frame reaches nobody, but is for h2 \(s2\.flows:\d+: dropped\)",
        ),
        (
            "s2.flows",
            "actions=pop_vlan,output:1",
            "actions=output:1",
            r"s2\.flows:\d+: the frame reaches h2 with a VLAN tag",
        ),
        (
            "s2.flows",
            "actions=pop_vlan,output:1",
            "actions=pop_vlan,output:1,output:1",
            "the frame reaches h2, h2, but is for h2",
        ),
        (
            "s2.flows",
            "actions=pop_vlan,output:1",
            "actions=pop_vlan,pop_vlan,output:1",
            r"s2\.flows:\d+: the actions cannot be applied to the frame",
        ),
        (
            "s2.groups",
            "pop_vlan,output:1",
            "pop_vlan,output:40",
            r"reaches h\d, h\d, but is for h2, h\d, h\d \(s2\.flows:\d+: nothing is behind port 40",
        ),
        (
            "s1.flows",
            "goto_table:1",
            "goto_table:0",
            r"s1\.flows:\d+: goto_table leads backwards",
        ),
    ],
)
def test_a_refusal_names_the_destination_the_switch_and_the_rule(
    folder: Path, name: str, old: str, new: str, reason: str
) -> None:
    judgement = damaged_and_judged(folder, name, old, new)
    assert judgement.status == 1
    assert re.search(reason, judgement.text), judgement.text


def test_classes_that_leave_addresses_out_are_refused(folder: Path) -> None:
    lines = proof_of(folder).splitlines()
    assert lines[-1].startswith("class ")
    judgement = judge(folder, "\n".join(lines[:-1]) + "\n")
    assert judgement.status == 1
    # The last one may be an exception of one before.
    assert "not cover all addresses" in judgement.text or "not the cube of a" in judgement.text


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        ("links", {"loss": 0.01}, "links that lose frames are not covered"),
        ("switches", {"hub": True}, "s1 is a hub, which is not covered"),
        ("hosts", {"port": 2}, "port s1:2 occurs twice"),
        ("hosts", {"mac": "02:00:00:00:02:01"}, "two hosts have one address"),
        ("hosts", {"tags": [1]}, 'unknown key "tags"'),
        ("links", {"a_port": 0}, "port 0 of s1"),
        ("links", {"a_port": -1}, "not a number"),
        ("links", {"a": "s9"}, "switch s9 is missing"),
        ("switches", {"name": "../s1"}, "the name"),
    ],
)
def test_fabrics_that_the_theorem_is_not_about_are_refused(
    folder: Path, kind: str, values: dict[str, Any], reason: str
) -> None:
    intact = proof_of(folder)
    edited_json(folder, kind, **values)
    judgement = judge(folder, with_files_of(intact, folder))
    assert judgement.status in (1, 2)
    assert reason in judgement.text


def test_no_file_may_differ_be_missing_or_be_new(folder: Path) -> None:
    proof = proof_of(folder)
    (folder / "notes.txt").write_text("counts for nothing")
    assert judge(folder, proof).accepted
    rules = (folder / "s1.flows").read_text()
    (folder / "s1.flows").write_text(rules + "\n")
    assert "s1.flows has changed: its SHA-256 is" in judge(folder, proof).text
    (folder / "s1.flows").unlink()
    assert judge(folder, proof) == (1, "knotless-verify: refused: s1.flows is missing\n")
    (folder / "s1.flows").write_text(rules)
    (folder / "s5.flows").write_text("")
    refused = "knotless-verify: refused: s5.flows is not a file of this proof\n"
    assert judge(folder, proof) == (1, refused)
    (folder / "s5.flows").unlink()
    (folder / "tags.json").write_text("{}")
    assert "hosts tag their frames, and the proof is of untagged ones" in judge(folder, proof).text


def test_rules_of_an_unknown_switch_are_refused(folder: Path) -> None:
    intact = proof_of(folder)
    (folder / "s5.flows").write_text("")
    judgement = judge(folder, with_files_of(intact, folder))
    assert judgement == (1, "knotless-verify: refused: s5.flows: fabric.json has no such switch\n")


def test_a_switch_without_rules_is_not_one_that_drops_all(folder: Path) -> None:
    intact = proof_of(folder)
    (folder / "s2.flows").unlink()
    judgement = judge(folder, with_files_of(intact, folder))
    assert judgement.status == 1
    assert "s2.flows is missing: what s2 holds is not known" in judgement.text


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("tp_dst=80 actions=drop", "field tp_dst is not covered"),
        ("eth_type=_ actions=drop", "the value of eth_type"),
        ("ip,nw_dst=10.0.0.1 actions=drop", "field ip"),
        ("in_port=1,in_port=2 actions=drop", "a field occurs twice"),
        ("vlan_pcp=1 actions=drop", "vlan_pcp is matched without a tag"),
        ("in_port=1 actions=FLOOD", "action FLOOD is not covered"),
        ("in_port=1 actions=CONTROLLER", "action CONTROLLER is not covered"),
        ("in_port=1 actions=output:0", "port 0"),
        ("in_port=1 actions=output:4294967291", "out of range"),
        ("in_port=1 actions=goto_table:1,output:1", "order of actions"),
        ("in_port=1 actions=set_field:5->vlan_vid", "vlan_vid without its bit"),
        ("in_port=1 actions=set_field:1->eth_dst", "field eth_dst cannot be set"),
        ("in_port=1 actions=,", "action  is not covered"),
        ("in_port=1  actions=drop", "not a rule"),
        ("metadata=0x4000000000000000 actions=drop", "not a number of at most 62 bits"),
        ("eth_dst=02:00:00:00:00 actions=drop", "not an address"),
        ("eth_dst=02:00:00:00:00:0_ actions=drop", "not a number"),
    ],
)
def test_rules_that_the_specification_does_not_cover_are_not_read(
    folder: Path, rule: str, reason: str
) -> None:
    intact = proof_of(folder)
    lines = (folder / "s1.flows").read_text().splitlines()
    lines[2:2] = [f"cookie=0x1,table=0,priority=1,{rule}"]
    (folder / "s1.flows").write_text("\n".join(lines) + "\n")
    judgement = judge(folder, with_files_of(intact, folder))
    assert judgement.status == 2
    assert judgement.text.startswith(f"knotless-verify: s1.flows:3: {reason}"), judgement


@pytest.mark.parametrize(
    "group",
    [
        "group_id=9,type=indirect,bucket=actions=output:1",
        "group_id=9,type=ff,bucket=actions=output:1",
        "group_id=9,type=ff,bucket=watch_group:1,actions=output:1",
        "group_id=9,type=ff,bucket=watch_port:0,actions=output:1",
        "group_id=9,type=select,bucket=weight:1,actions=output:1",
        "group_id=1,type=all,bucket=actions=output:1",
        "group_id=9,type=all,bucket=actions=goto_table:1",
        "nonsense",
    ],
)
def test_groups_that_the_specification_does_not_cover_are_not_read(
    folder: Path, group: str
) -> None:
    intact = proof_of(folder)
    (folder / "s1.groups").write_text(f"{RING['s1.groups']}{group}\n")
    judgement = judge(folder, with_files_of(intact, folder))
    assert judgement.status == 2
    assert judgement.text.startswith("knotless-verify: s1.groups:")


@pytest.mark.parametrize("control", ["none", "host", "switch", "auto", "PFC"])
def test_other_flow_control_is_refused(folder: Path, control: str) -> None:
    proof = proof_of(folder).replace("flow-control pause", f"flow-control {control}")
    judgement = judge(folder, proof)
    assert judgement.status == 1
    assert f"flow control {control} is not covered" in judgement.text


def test_priorities_that_share_a_queue_have_one_rank(tmp_path: Path) -> None:
    folder = write_rules(tmp_path / "rules", files_of_plan("torus,5", engine="dor"))
    proof = proof_of(folder)
    assert "flow-control pfc" in proof
    apart = proof.replace("flow-control pfc\n", "flow-control pfc\ngroup 2-7\n")
    judgement = judge(folder, apart)
    assert judgement.accepted
    assert "under PFC, priorities 2 and 3 and 4 and 5 and 6 and 7 together\n" in judgement.text
    # Both virtual channels of this plan are needed: together they have a cycle.
    together = proof.replace("flow-control pfc\n", "flow-control pfc\ngroup 0-1\n")
    assert judge(folder, together).status == 1
    assert judge(folder, proof.replace("flow-control pfc", "flow-control pause")).status == 1
    lossy = proof.replace("flow-control pfc\n", "flow-control pfc\nlossless 0\n")
    judgement = judge(folder, lossy)
    assert judgement == (
        1,
        "knotless-verify: refused: priority 1, which rules set, does not pause\n",
    )
    assert judge(folder, lossy.replace("lossless 0", "lossless 0-1")).accepted


def test_usage(folder: Path) -> None:
    assert run("--help").status == 0
    assert run("--help").text.startswith("knotless-verify FOLDER PROOF ")
    for arguments in [(), ("--verify", folder), (folder,), (folder, folder, folder), ("", "x")]:
        assert run(*arguments).status == 2
    assert run(folder, folder / "missing") == (
        2,
        f"knotless-verify: {folder}/missing: No such file or directory\n",
    )
    assert run(folder / "missing", folder / "fabric.json").status == 2
