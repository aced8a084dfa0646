"""Changes of the rules of Open vSwitch bridges before they are made."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import knotless as kn
from knotless.base.errors import KnotlessError, RuleError
from knotless.cli.main import main
from knotless.importers.openflow.flow_changes import changed_flows, flow_changes
from tests.support import REPOSITORY

RING = REPOSITORY / "tests" / "data" / "fabrics" / "ovs-table-miss"
PORTS = {"eth1": 1, "eth2": 2}
A = " cookie=0x0, table=0, priority=5,in_port=1 actions=output:2"
B = " cookie=0x0, table=0, priority=7,in_port=1,dl_dst=00:00:00:00:00:02 actions=output:3"
C = " cookie=0x0, table=1, priority=5,ip,nw_dst=10.1.0.0/16 actions=output:4"
UNREAD = " cookie=0x0, table=0, priority=9,in_port=1 actions=learn(table=3)"
DUMP = [A, B, C, UNREAD]


def after(change: str) -> list[str]:
    return changed_flows("\n".join(DUMP), flow_changes(change, PORTS), PORTS).splitlines()


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("delete", [UNREAD]),
        ("delete in_port=1", [C, UNREAD]),
        ("delete in_port=eth1", [C, UNREAD]),
        ("delete table=1", [A, B, UNREAD]),
        ("delete ip", [A, B, UNREAD]),
        ("delete ip,nw_dst=10.0.0.0/8", [A, B, UNREAD]),
        ("delete_strict priority=5,in_port=1", [B, C, UNREAD]),
        ("# all of a port\n\ndelete dl_dst=00:00:00:00:00:02", [A, C, UNREAD]),
        ("ovs-ofctl -O OpenFlow13 del-flows br0 'in_port=1'", [C, UNREAD]),
        ("sudo ovs-ofctl --strict del-flows br0 priority=5,in_port=1", [B, C, UNREAD]),
    ],
)
def test_a_deletion_means_rules_at_least_as_narrow(change: str, left: list[str]) -> None:
    assert after(change) == left


def test_a_rule_replaces_one_with_its_table_priority_and_match() -> None:
    new = " priority=5,in_port=1 actions=drop"
    assert after("add priority=5,in_port=1,actions=drop") == [B, C, UNREAD, new]
    assert after("priority=5,in_port=1 actions=drop") == [B, C, UNREAD, new]
    assert after("ovs-ofctl add-flow br0 priority=6,in_port=1,actions=output:2") == [
        *DUMP,
        " priority=6,in_port=1 actions=output:2",
    ]


def test_a_modification_has_other_actions_and_the_same_match() -> None:
    drop = "actions=drop"
    changed = [A.replace("actions=output:2", drop), B.replace("actions=output:3", drop)]
    assert after("modify in_port=1,actions=drop") == [*changed, C, UNREAD]
    assert after("modify_strict priority=5,in_port=1 actions=drop") == [changed[0], *DUMP[1:]]


def test_changes_are_made_one_after_the_other() -> None:
    both = "delete in_port=1\nadd in_port=1,actions=output:2\ndelete_strict in_port=1"
    assert after(both) == [C, UNREAD]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("delete in_port=3", "line 1: no rule matches 'in_port=3'"),
        ("delete ip,nw_dst=10.1.2.0/24", "no rule matches"),
        ("delete_strict in_port=1", "no rule matches"),
        ("modify in_port=3 actions=drop", "no rule matches"),
        ("\ndelete colour=red", "line 2: match 'colour' is not supported"),
        ("add in_port=1", "'in_port=1' has no actions"),
        ("add in_port=1,actions=learn(table=1)", "not supported"),
        ("delete cookie=0x1/-1", "which rules a cookie or actions mean is not read"),
        ("delete in_port=1,actions=drop", "which rules a cookie or actions mean is not read"),
        ("delete priority=5,in_port=1", "a priority only counts with --strict"),
        ("delete in_port=1,out_port=2", "match 'out_port' is not supported"),
        ("ovs-ofctl dump-flows br0", "a command is one of ovs-ofctl add-flow"),
        ("ovs-ofctl add-flow br0 a b", "it is not 'ovs-ofctl add-flow"),
        ("ovs-ofctl add-flow 'br0", "not a command"),
        ("ovs-ofctl --check-overlap add-flow br0 actions=drop", "it is not 'ovs-ofctl"),
        ("# nothing", "there is no line for ovs-ofctl"),
    ],
)
def test_what_cannot_be_made_is_an_error(change: str, reason: str) -> None:
    with pytest.raises(RuleError) as caught:
        after(change)
    assert reason in str(caught.value)


def test_a_snapshot_after_a_change_of_rules() -> None:
    before = kn.snapshot(RING)
    assert before.verdict().source.safe is False
    # Frames for h2, h3 and h1 go around the ring; without one of these there is no cycle.
    change = "ovs-ofctl mod-flows s1 dl_dst=00:00:00:00:00:02,actions=drop"
    text = before.with_config_changes({"s1": change}).text("s1/flows")
    expected = changed_flows(before.text("s1/flows"), flow_changes(change, {}), {})
    assert text == expected != before.text("s1/flows")
    after = before.with_config_changes({"s1": change})
    assert after.verdict().source.cycle == []
    with pytest.raises(KnotlessError, match="s9: there is no configuration"):
        before.with_config_changes({"s9": change})
    dump = REPOSITORY / "tests" / "data" / "fabrics" / "ovs-one-dump"
    with pytest.raises(KnotlessError, match="s1: its rules are in .* with others"):
        kn.snapshot(dump).with_config_changes({"s1": change})


def test_the_command_judges_before_and_after(tmp_path: Path) -> None:
    file = tmp_path / "change"
    file.write_text("delete dl_dst=00:00:00:00:00:02\n")
    words = ["check", str(RING), "--patch", f"s1={file}"]
    done = CliRunner(mix_stderr=False).invoke(main, words)
    assert done.exit_code == 1
    assert "before it CAN DEADLOCK under PAUSE: s1:2/0" in done.stdout
    file.write_text("delete in_port=9\n")
    done = CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")
    assert (done.exit_code, done.stderr) == (
        2,
        f"knotless: {file}: s1: line 1: no rule matches 'in_port=9'\n",
    )
