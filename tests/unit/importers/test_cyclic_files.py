"""Files and folders that refer to themselves: a verdict or one line, never an endless loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.imported import verdict_of_imported
from tests.support.linux_dumps import write_linux
from tests.support.ovs_dumps import write_ovs
from tests.support.router_nets import leaf_spine


def complaint(path: Path) -> str:
    """Return the one line with which a check is refused."""
    done = CliRunner(mix_stderr=False).invoke(main, ["check", str(path)], prog_name="knotless")
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_folder_that_links_to_itself(tmp_path: Path) -> None:
    """Links to folders are not followed, so each file is read once."""
    folder = leaf_spine(3, 2).write(tmp_path / "fabric")
    (folder / "leaf0" / "again").symlink_to(folder)
    assert verdict_of_imported(read_paths([folder])).acyclic is True


def test_a_link_that_leads_to_itself(tmp_path: Path) -> None:
    folder = leaf_spine(2, 1).write(tmp_path)
    (folder / "leaf0" / "a").symlink_to("b")
    (folder / "leaf0" / "b").symlink_to("a")
    assert "cannot be read: Too many levels of symbolic links" in complaint(folder)


def edited(file: Path, change: dict[str, Any]) -> None:
    values = json.loads(file.read_text())
    for table, rows in change.items():
        values[table] = {**values.get(table, {}), **rows}
    file.write_text(json.dumps(values))


def test_a_lag_that_is_a_member_of_itself(tmp_path: Path) -> None:
    folder = leaf_spine(3, 2).write(tmp_path)
    members: dict[str, Any] = {"PortChannel1|PortChannel2": {}, "PortChannel2|PortChannel1": {}}
    edited(folder / "leaf0" / "config_db.json", {"PORTCHANNEL_MEMBER": members})
    assert verdict_of_imported(read_paths([folder])).acyclic is True


def test_next_hop_groups_of_each_other(tmp_path: Path) -> None:
    folder = leaf_spine(3, 2).write(tmp_path)
    groups = {f"NEXTHOP_GROUP_TABLE:{n}": {"nexthop_group": str(1 - n)} for n in range(2)}
    edited(folder / "leaf0" / "appl_db.json", groups)
    edited(folder / "leaf0" / "appl_db.json", {"ROUTE_TABLE:10.1.0.0/24": {"nexthop_group": "0"}})
    verdict = verdict_of_imported(read_paths([folder]))
    assert verdict.acyclic is None
    assert "the route of leaf0 to 10.1.0.0/24: " in verdict.missing[0]


@pytest.mark.parametrize("key", ["master", "link"])
def test_devices_of_linux_on_each_other(key: str, tmp_path: Path) -> None:
    folder = write_linux(leaf_spine(3, 2), tmp_path)
    file = folder / "leaf0" / "addr"
    devices = json.loads(file.read_text())
    names = [device["ifname"] for device in devices[2:4]]
    for device, other in zip(devices[2:4], names[::-1], strict=True):
        device[key] = other
    devices.append({"ifname": "own", "flags": [], key: "own"})
    file.write_text(json.dumps(devices))
    if key == "master":  # both are bridges, which are networks of hosts
        assert "port 1 of leaf0 is already used by host leaf0-Ethernet0" in complaint(folder)
    else:
        assert verdict_of_imported(read_paths([folder])).acyclic is True


@pytest.mark.parametrize(
    ("actions", "groups", "says"),
    [
        ("goto_table:0", "", "a rule of table 0 goes back to table 0"),
        ("resubmit(,0)", "", "action 'resubmit(,0)' is not supported"),
        ("group:9", "group_id=9,type=all,bucket=actions=group:9", "group 9 uses groups without"),
    ],
)
def test_rules_that_lead_to_themselves(
    actions: str, groups: str, says: str, tmp_path: Path
) -> None:
    plan = make_plan(load("ring,4"), "updown")
    folder = write_ovs(plan.fabric, compile_rules(plan), tmp_path)
    rule = f" table=0,priority=60000 actions={actions}"
    for name, text in (("flows", rule), ("groups", groups)):
        file = folder / "s2" / name
        file.write_text(f"{file.read_text()}{text}\n")
    verdict = verdict_of_imported(read_paths([folder]))
    assert verdict.acyclic is None
    assert any(says in text for text in verdict.missing)
