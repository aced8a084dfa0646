"""Forms in which switches and collectors write files: JSON Lines, several objects, port names."""

from __future__ import annotations

import json
import random
import re
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
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.changed_fabrics import DATA, Config, changed
from tests.support.ovs_dumps import write_ovs
from tests.support.router_nets import leaf_spine, random_net

VALUES: list[Any] = [{"time": 1}, [], ["a", {"b": []}], {}, {"PORT": {}}, [[1, 2]], {"x": None}]


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


@pytest.mark.parametrize("base", ["control-knot", "control-safe"])
@pytest.mark.seeds(12)
def test_json_lines_are_listed_as_not_read(base: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311
    folder = changed(tmp_path / base, base)
    alone = judged(folder)
    events = folder / "r0" / "events.json"
    count = rng.randint(2, 5)
    separator = rng.choice(["\n", "\n\n", " ", "\r\n"])
    events.write_text(separator.join(json.dumps(rng.choice(VALUES)) for _ in range(count)))
    verdict = judged(folder)
    assert verdict.acyclic is (base == "control-safe")
    assert verdict.ignored == [str(events)]
    assert (verdict.cycle, verdict.notes, verdict.missing) == (
        alone.cycle,
        alone.notes,
        alone.missing,
    )


def test_json_lines_that_the_command_names_are_an_error(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text('{"a": 1}\n{"a": 2}\n')
    done = CliRunner(mix_stderr=False).invoke(main, ["check", str(file)])
    assert done.exit_code == 2
    assert "no known kind of file" in done.stderr


def test_objects_of_vrfs_one_after_the_other() -> None:
    """As older FRR prints them for ``show ip route vrf all json``."""
    verdict = judged(DATA / "frr-vrf-all")
    assert (verdict.acyclic, verdict.switches, verdict.undelivered) == (True, 2, 0)
    assert "r0-vrf9 is left out: it leads to no other router" in verdict.notes
    assert "VRFs of r0 are shown as switches of their own: r0-vrf9" in verdict.notes


@pytest.mark.seeds(30)
@pytest.mark.parametrize("named", [True, False])
def test_both_forms_of_all_vrfs_say_the_same(seed: int, named: bool, tmp_path: Path) -> None:
    net = random_net(seed)
    for router in net.routers:
        default = net.frr_json(router)
        other = json.loads(json.dumps(default))
        for prefix, entries in [*other.items()]:
            for entry in entries:
                entry["vrfId"] = 9
                if named:
                    entry["vrfName"] = "blue"
                for hop in entry["nexthops"]:
                    if "interfaceName" in hop:
                        hop["interfaceName"] += ".7"
            other[prefix] = entries
        keyed = {"default": default, "blue" if named else "vrf9": other}
        for form, text in (
            ("keyed", json.dumps(keyed)),
            ("several", json.dumps(default) + "\n" + json.dumps(other) + "\n"),
        ):
            folder = tmp_path / form / "fabric" / router
            folder.mkdir(parents=True)
            (folder / "routes.json").write_text(text)
            (folder / "config_db.json").write_text(json.dumps(net.config(router)))
            (folder / "lldp.json").write_text(json.dumps(net.lldp_json(router)))
    keyed_verdict, several = (judged(tmp_path / form / "fabric") for form in ("keyed", "several"))
    assert several == keyed_verdict


def test_two_objects_of_one_vrf_are_unclear(tmp_path: Path) -> None:
    net = leaf_spine(2, 1)
    folder = net.write(tmp_path, "frr")
    file = folder / "leaf0" / "routes.json"
    file.write_text(file.read_text() * 2)
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert any("VRF default occurs twice" in text for text in verdict.missing)


def test_rules_that_name_ports() -> None:
    verdict = judged(DATA / "port-names")
    assert (verdict.acyclic, verdict.undelivered, verdict.missing) == (True, 0, [])


def test_rules_that_name_ports_without_their_numbers(tmp_path: Path) -> None:
    for switch in ("s1", "s2"):
        (tmp_path / switch).mkdir()
        text = (DATA / "port-names" / switch / "flows").read_text()
        (tmp_path / switch / "flows").write_text(text)
    done = CliRunner(mix_stderr=False).invoke(main, ["check", str(tmp_path)])
    assert done.exit_code == 2
    assert "port 's1-eth2' has no number: ovs-ofctl dump-ports-desc of the switch" in done.stderr


@pytest.mark.parametrize("quoted", [True, False])
@pytest.mark.parametrize(
    ("spec", "engine"),
    [("ring,4", "minimal"), ("ring,5", "updown"), ("mesh,3,2,hosts=2", "dor"), ("lsft,2", "lsft")],
)
def test_names_and_numbers_of_ports_say_the_same(
    spec: str, engine: str, quoted: bool, tmp_path: Path
) -> None:
    plan = make_plan(load(spec), engine)
    folder = write_ovs(plan.fabric, compile_rules(plan), tmp_path / "fabric")
    numbers = judged(folder)
    mark = '"' if quoted else ""
    for switch in plan.fabric.switches:
        for name in ("flows", "groups"):
            file = folder / switch.name / name
            port = rf"\1{mark}{switch.name}-eth\2{mark}"
            file.write_text(re.sub(r"(in_port=|output:)(\d+)", port, file.read_text()))
            assert name == "groups" or "-eth" in file.read_text()
    assert judged(folder) == numbers


def test_the_server_with_two_rails_of_the_triangle(tmp_path: Path) -> None:
    def config(tables: Config) -> None:
        tables["DEVICE_NEIGHBOR"] = {"Ethernet8": {"name": "gpu-1", "port": "rail0"}}
        tables["DEVICE_NEIGHBOR_METADATA"] = {"gpu-1": {"type": "Server"}}

    def appl(tables: Config) -> None:
        tables["LLDP_ENTRY_TABLE:Ethernet8"] = {
            "lldp_rem_sys_name": "gpu-1",
            "lldp_rem_port_id": "02:00:00:00:00:01",
            "lldp_rem_sys_cap_enabled": "00 80",
        }

    verdict = judged(changed(tmp_path, "control-safe", config, appl=appl, routers=("r0", "r1")))
    assert (verdict.acyclic, verdict.missing, verdict.switches) == (True, [], 3)
