"""Folders as users have them: files of other kinds, backup copies, damaged and foreign files."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.importers.file_kinds import file_kinds
from knotless.importers.not_read import COMMANDS
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.changed_fabrics import Config, changed
from tests.support.ovs_dumps import write_ovs
from tests.support.readable_fabrics import WRITERS, in_vrf
from tests.support.router_nets import random_net

FOREIGN = {
    "telemetry.json": (b'{"time": 17, "value": NaN}', "not JSON: NaN is not a number"),
    "template.json": (b'{%s: "nexthops"}', "no known kind of file"),
    "events.json": (b'{"a": 1}\n{"b": ', "not JSON"),
    "metrics.json": (b'{"rate": -Infinity}', "not JSON: -Infinity is not a number"),
    "junos.conf": (b"system {\n    host-name leaf9;\n}\n", "the configuration of Junos"),
    "eos.json": (b'{"vrfs": {"default": {"routes": {}}}}', "no known kind of file"),
    "nxos.txt": (b"IP Route Table for VRF default\n", "no known kind of file"),
    "nvue.yaml": (b"- set:\n    interface:\n      swp1: {}\n", "the configuration of NVIDIA NVUE"),
    "core.bin": (bytes(range(256)) * 4, "cannot be read: not UTF-8 text"),
    "config_db.json.bak": (b'{"PORT": {"Ethernet0": {"speed": "1"}}}', "a backup copy"),
    "appl_db.json~": (b'{"ROUTE_TABLE:10.0.0.0/8": {"ifname": "Ethernet9"}}', "a backup copy"),
    "config_db.json.old": (b'{"PORT": ', "a backup copy"),
    "minigraph.xml": (b'<?xml version="1.0"?>\n<DeviceMiniGraph xmlns="x">', "a minigraph"),
}


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


@pytest.mark.parametrize("base", ["control-knot", "control-safe"])
@pytest.mark.seeds(12)
def test_foreign_files_change_no_verdict(base: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311
    folder = changed(tmp_path / base, base)
    alone = judged(folder)
    names = rng.sample(sorted(FOREIGN), rng.randint(1, 4))
    for name in names:
        (folder / rng.choice(["r0", "r1", "."]) / name).write_bytes(FOREIGN[name][0])
    verdict = judged(folder)
    assert (verdict.acyclic, verdict.cycle) == (alone.acyclic, alone.cycle)
    assert (verdict.missing, verdict.notes) == (alone.missing, alone.notes)
    assert sorted(Path(file["file"]).name for file in verdict.not_read) == sorted(names)
    for file in verdict.not_read:
        assert FOREIGN[Path(file["file"]).name][1] in file["reason"]
    assert verdict.ignored == [file["file"] for file in verdict.not_read]


def test_what_was_not_read_is_printed_by_reason(tmp_path: Path) -> None:
    folder = changed(tmp_path, "control-safe")
    for router in ("r0", "r1", "r2"):
        (folder / router / "notes.txt").write_text("hello")
    (folder / "r0" / "minigraph.xml").write_bytes(FOREIGN["minigraph.xml"][0])
    done = CliRunner(mix_stderr=False).invoke(main, ["check", str(folder)])
    assert done.exit_code == 0
    assert "r0/notes.txt, " in done.stdout
    assert "r2/notes.txt: no known kind of file" in done.stdout
    command = "sonic-cfggen -m minigraph.xml --print-data > config.json"
    assert f"minigraph.xml: a minigraph (instead: {command})" in done.stdout


@pytest.mark.parametrize("name", sorted(WRITERS.keys() - {"techsupport"}))
@pytest.mark.seeds(4)
def test_damaged_files_never_make_a_fabric_safe(name: str, seed: int, tmp_path: Path) -> None:
    """All of these fabrics can deadlock; a file is cut off, or has NaN in it."""
    rng = random.Random(f"{name}/{seed}")  # noqa: S311
    folder = WRITERS[name](tmp_path / "fabric")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = rng.choice(files)
    data = file.read_bytes()
    place = rng.randrange(len(data) // 2, len(data) - 2)
    text = data[:place] if rng.random() < 0.5 else data[:place] + b" NaN \xff" + data[place:]
    file.write_bytes(text)
    done = CliRunner(mix_stderr=False).invoke(main, ["check", "--json", str(folder)])
    if done.exit_code == 2:
        assert done.stderr.count("\n") == 1
        return
    verdict = json.loads(done.stdout)
    assert verdict["acyclic"] is not True
    if verdict["not_read"]:
        assert verdict["acyclic"] is None
        (missing,) = [line for line in verdict["missing"] if str(file) in line]
        assert "(instead: " in missing


def test_a_file_that_the_command_names_is_still_an_error(tmp_path: Path) -> None:
    file = changed(tmp_path, "control-safe") / "r0" / "config_db.json.bak"
    file.write_text('{"PORT": NaN}')
    done = CliRunner(mix_stderr=False).invoke(main, ["check", str(file)])
    assert done.exit_code == 2
    assert "config_db.json.bak: not JSON: NaN is not a number" in done.stderr


def test_every_kind_has_a_command() -> None:
    assert COMMANDS.keys() == file_kinds().keys()


@pytest.mark.parametrize("vrf", ["Vrf1", "Vrf-RED", "blue", "abc", "VrfA_2", "Vnet_100", "vrf-7"])
@pytest.mark.seeds(4)
def test_names_of_vrfs_in_appl_db(vrf: str, seed: int, tmp_path: Path) -> None:
    """Whatever a VRF is called, the verdict is that of its routes; IPv6 prefixes have colons."""
    net = random_net(seed)
    plain = judged(net.write(tmp_path / "plain"))
    in_vrf(net, vrf)
    for router in net.routers:
        folder = tmp_path / "vrf" / router
        folder.mkdir(parents=True)
        routes = {
            key.replace("TABLE:", f"TABLE:{vrf}:"): row
            for key, row in net.appl_routes(router).items()
        }
        routes[f"ROUTE_TABLE:{vrf}:fd00:{seed}::/64"] = {"blackhole": "true"}
        config: Config = net.config(router)
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "appl.json").write_text(json.dumps({**routes, **net.lldp_appl(router)}))
    verdict = judged(tmp_path / "vrf")
    assert verdict.acyclic == plain.acyclic
    assert (verdict.pairs, verdict.undelivered) == (plain.pairs, plain.undelivered)
    assert [name.replace(f"-{vrf}", "") for name in verdict.cycle] == plain.cycle


def test_a_key_that_is_no_prefix_is_unclear(tmp_path: Path) -> None:
    routes = {"ROUTE_TABLE:Vrf1:10.0.0.0/40": {"ifname": "Ethernet0", "nexthop": "192.0.2.1"}}
    verdict = judged(changed(tmp_path, "control-safe", appl=lambda tables: tables.update(routes)))
    assert verdict.acyclic is None
    assert any("10.0.0.0/40" in text for text in verdict.missing)


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize(
    ("spec", "engine"), [("ring,5", "updown"), ("mesh,3,2,hosts=2", "dor"), ("ring,4", "minimal")]
)
def test_rules_that_clear_the_action_set(
    spec: str, engine: str, written: bool, tmp_path: Path
) -> None:
    """As ONOS does in each of its rules; without write_actions, the set is always empty."""
    plan = make_plan(load(spec), engine)
    folder = write_ovs(plan.fabric, compile_rules(plan), tmp_path / "fabric")
    plain = judged(folder)
    arp = "priority=40000,dl_type=0x88cc actions=clear_actions\n"
    more = "priority=7,dl_type=0x1234 actions=write_actions(output:1)\n" if written else ""
    for switch in plan.fabric.switches:
        file = folder / switch.name / "flows"
        cleared = re.sub(r"(actions=.*[^,\n])$", r"\1,clear_actions", file.read_text(), flags=re.M)
        assert "clear_actions" in cleared
        file.write_text(cleared.replace("drop,", "") + arp + more)
    verdict = judged(folder)
    if written and plain.acyclic is False:  # no packet of the cycle has this EtherType
        assert (verdict.acyclic, verdict.cycle) == (False, plain.cycle)
    elif written:
        assert verdict.acyclic is None
        assert any("'write_actions(output:1)' is not supported" in s for s in verdict.missing)
    else:
        assert (verdict.acyclic, verdict.cycle) == (plain.acyclic, plain.cycle)
        assert verdict.undelivered == plain.undelivered
