"""Every remedy makes the fabric safe; patches do so when the patched files are read again."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.importers.fabric import TableFabric
from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.remedies import Remedy, remedies_of
from knotless.verification.remedy_priorities import pauses_of
from knotless.verification.remedy_without_pfc import without_pfc
from tests.support.classical_deadlocks import bounce, dual_tor, routing_loop
from tests.support.infiniband_dumps import random_subnet
from tests.support.router_dumps import HOST_PORT, RouterNet, plain_qos
from tests.support.router_nets import clos, leaf_spine, shortest_paths

CASES: dict[str, Callable[[], RouterNet]] = {
    "bounce": bounce,
    "loop": routing_loop,
    "tunnel": lambda: dual_tor(remapped=False),
}


def tables_in(folder: Path) -> TableFabric:
    imported = read_paths([folder])
    assert isinstance(imported, TableFabric)
    return imported


def proposed(net: RouterNet, folder: Path) -> tuple[ImportedVerdict, dict[str, list[Remedy]]]:
    imported = tables_in(net.write(folder))
    verdict = verdict_of_imported(imported)
    by_kind: dict[str, list[Remedy]] = {}
    for remedy in remedies_of(imported, verdict):
        by_kind.setdefault(remedy.kind, []).append(remedy)
    return verdict, by_kind


def patched(net: RouterNet, remedy: Remedy, folder: Path) -> ImportedVerdict:
    """Return the verdict on the files after the patches of a remedy."""
    patch(net.write(folder), remedy.files)
    return verdict_of_imported(read_paths([folder]))


def patch(folder: Path, files: Mapping[str, str]) -> None:
    """Apply patches to the configurations in a folder."""
    for name, text in files.items():
        file = folder / name.removesuffix(".json") / "config_db.json"
        config = json.loads(file.read_text())
        for op in json.loads(text):
            apply(config, op)
        file.write_text(json.dumps(config))


def apply(config: Any, op: dict[str, Any]) -> None:
    """Apply an operation of RFC 6902, section 4.1."""
    assert op["op"] == "add"
    words = [word.replace("~1", "/").replace("~0", "~") for word in op["path"].split("/")[1:]]
    for word in words[:-1]:
        config = config[word]
    config[words[-1]] = op["value"]


@pytest.mark.parametrize("case", CASES)
def test_every_remedy_is_safe(case: str, tmp_path: Path) -> None:
    verdict, by_kind = proposed(CASES[case](), tmp_path)
    assert verdict.acyclic is False
    for remedy in (remedy for remedies in by_kind.values() for remedy in remedies):
        if remedy.fabric is not None:
            after = verdict_of_imported(remedy.fabric)
            assert after.acyclic is True
            assert after.undelivered == verdict.undelivered + remedy.cost["pairs_lost"]
    assert {"bounce-priority", "engine", "without-pfc"} <= set(by_kind)


@pytest.mark.parametrize("case", CASES)
def test_links_without_pfc(case: str, tmp_path: Path) -> None:
    net = CASES[case]()
    _, by_kind = proposed(net, tmp_path / "before")
    (remedy,) = by_kind["without-pfc"]
    after = patched(net, remedy, tmp_path / "after")
    assert (after.acyclic, after.missing) == (True, [])
    assert set(after.vcs) == {"3", "4"}


@pytest.mark.parametrize("case", CASES)
def test_no_link_without_pfc_can_be_left_out(case: str, tmp_path: Path) -> None:
    imported = tables_in(CASES[case]().write(tmp_path))
    result = without_pfc(imported)
    assert result is not None
    _, links = result
    for link in links:
        fewer = pauses_of(imported)
        for channel, priority in links:
            if (channel, priority) != link:
                fewer[[channel, imported.channels.reverse[channel]], priority] = False
        assert verdict_of_imported(imported.with_pauses(fewer)).acyclic is False


def test_tunnels_with_priorities_of_their_own(tmp_path: Path) -> None:
    net = dual_tor(remapped=False)
    _, by_kind = proposed(net, tmp_path / "before")
    (remedy,) = by_kind["tunnel-priority"]
    assert remedy.cost["extra_priorities"] == 2
    after = patched(net, remedy, tmp_path / "after")
    assert (after.acyclic, after.missing, after.undelivered) == (True, [], 0)
    assert set(after.vcs) == {"2", "3", "4", "5"}


def test_a_priority_for_packets_that_bounce(tmp_path: Path) -> None:
    """The patch marks what comes down by a class of its own, which a port up sends on in 2."""
    net = bounce()
    _, by_kind = proposed(net, tmp_path / "before")
    (remedy,) = by_kind["bounce-priority"]
    assert remedy.fabric is not None
    safe = {"2": True, "3": True, "4": True, "5": True}
    assert verdict_of_imported(remedy.fabric).vcs == safe
    after = patched(net, remedy, tmp_path / "after")
    assert (after.acyclic, after.missing, after.undelivered) == (True, [], 0)
    assert (after.vcs, after.problems) == (safe, [])
    assert not any("KNOTLESS" in op["path"] for op in json.loads(remedy.files["spine0.json"]))


def test_what_comes_down_is_sent_to_hosts_in_the_queues_that_they_pause(tmp_path: Path) -> None:
    net = bounce()
    _, by_kind = proposed(net, tmp_path / "before")
    (remedy,) = by_kind["bounce-priority"]
    patched(net, remedy, tmp_path / "after")
    config = json.loads((tmp_path / "after" / "leaf2" / "config_db.json").read_text())
    marks = config["DSCP_TO_TC_MAP"]["KNOTLESS_FROM_ABOVE"]
    queues = config["TC_TO_QUEUE_MAP"][config["PORT_QOS_MAP"][HOST_PORT]["tc_to_queue_map"]]
    assert {dscp: queues[marks[dscp]] for dscp in ("3", "4", "2", "5", "8")} == {
        **{"3": "3", "4": "4"},
        **{"2": "3", "5": "4"},
        **{"8": "1"},
    }
    assert len({marks[dscp] for dscp in ("3", "4", "2", "5", "8")}) == 5


def test_a_patch_for_packets_that_bounce_needs_all_of_its_switches(tmp_path: Path) -> None:
    """Without the marks of one switch that bounces packets, these close the cycle again."""
    net = bounce()
    _, by_kind = proposed(net, tmp_path / "before")
    (remedy,) = by_kind["bounce-priority"]
    marks = json.loads(remedy.files["leaf2.json"])
    left = [op for op in marks if not op["path"].endswith("/dscp_to_tc_map")]
    files = {**remedy.files, "leaf2.json": json.dumps(left)}
    files["leaf3.json"] = files["leaf2.json"]
    after = patched(net, replace(remedy, files=files), tmp_path / "after")
    assert after.acyclic is False


def test_withdrawn_routes_name_what_they_cost(tmp_path: Path) -> None:
    verdict, by_kind = proposed(bounce(), tmp_path)
    (remedy,) = by_kind["withdraw-routes"]
    assert remedy.cost["routes"] == len(remedy.changes) == 2
    assert remedy.cost["pairs_lost"] == 4
    assert verdict.undelivered == 0


def with_static_routes(net: RouterNet, files: Mapping[str, str]) -> RouterNet:
    """Return the fabric with the static routes that patches or lines for vtysh contain."""
    for name, text in files.items():
        router, _, form = name.rpartition(".")
        routes: dict[str, list[tuple[str, str]]] = {}
        if form == "json":
            tables: dict[str, Any] = {}
            for op in json.loads(text):
                apply(tables, op)
            for key, row in tables["STATIC_ROUTE"].items():
                listed = (row.get(field, "").split(",") for field in ("nexthop", "ifname"))
                hops = [*zip(*listed, strict=True)] if row.get("blackhole") != "true" else []
                routes[key.removeprefix("default|")] = hops
        for line in text.splitlines() if form == "conf" else ():
            _, _, prefix, *hop = line.split()
            added = routes.setdefault(prefix, [])
            added += [] if hop == ["blackhole"] else [(hop[0], hop[1])]
        net.routes[router] |= routes
    return net


def written(net: RouterNet, folder: Path, form: str) -> Path:
    """Write the files; those of FRR without what names a SONiC switch."""
    net.write(folder, form)
    for file in folder.glob("*/config_db.json") if form == "frr" else ():
        config = json.loads(file.read_text())
        del config["DEVICE_METADATA"]
        file.write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("form", ["sonic", "frr"])
@pytest.mark.parametrize("case", ["bounce", "loop"])
def test_withdrawn_routes_are_static_routes(case: str, form: str, tmp_path: Path) -> None:
    net = CASES[case]()
    imported = tables_in(written(net, tmp_path / "before", form))
    verdict = verdict_of_imported(imported)
    (remedy,) = [
        candidate
        for candidate in remedies_of(imported, verdict)
        if candidate.kind == "withdraw-routes"
    ]
    endings = {name.rpartition(".")[2] for name in remedy.files}
    assert endings == {"json" if form == "sonic" else "conf"}
    after = tables_in(written(with_static_routes(net, remedy.files), tmp_path / "after", form))
    again = verdict_of_imported(after)
    assert (again.acyclic, again.missing) == (True, [])
    assert again.undelivered == verdict.undelivered + remedy.cost["pairs_lost"]


def broken_clos(seed: int) -> RouterNet:
    """Return a Clos network of three levels without some links, routed by shortest paths."""
    rng = random.Random(seed)  # noqa: S311
    net = clos(rng.choice([2, 3]), 2, 2, rng.choice([1, 2]))
    gone = set(rng.sample(range(len(net.cables)), rng.randint(2, 4)))
    net.cables = [cable for number, cable in enumerate(net.cables) if number not in gone]
    net.routes = {router: {} for router in net.routes}
    shortest_paths(net)
    net.qos = {router: plain_qos(net.ports(router)) for router in net.routers}
    return net


@pytest.mark.parametrize("seed", [12, 17, 22, 23])
def test_files_do_what_was_proven(seed: int, tmp_path: Path) -> None:
    """Read after the change, the files have the verdict of the changed state."""
    net = broken_clos(seed)
    verdict, by_kind = proposed(net, tmp_path / "before")
    assert verdict.acyclic is False
    for kind in ("bounce-priority", "without-pfc", "withdraw-routes"):
        for remedy in by_kind[kind]:
            assert remedy.files
            assert remedy.fabric is not None
            folder = tmp_path / kind
            expected = verdict_of_imported(remedy.fabric)
            if kind == "withdraw-routes":
                changed = with_static_routes(broken_clos(seed), remedy.files)
                after = verdict_of_imported(tables_in(changed.write(folder)))
            else:
                after = patched(net, remedy, folder)
            assert (after.acyclic, after.missing) == (True, [])
            assert (after.vcs, after.undelivered) == (expected.vcs, expected.undelivered)


def test_a_fabric_in_parts_is_not_planned(tmp_path: Path) -> None:
    """Its other remedies are proposed; routes of an engine are not."""
    net = bounce()
    net.cables.append((("alone0", "Ethernet0"), ("alone1", "Ethernet0")))
    for router, home in (("alone0", "10.8.0.0/24"), ("alone1", "10.9.0.0/24")):
        net.hosts[router, "Vlan10"] = home.replace(".0/", ".1/")
        net.routes[router] = {home: [("", "Vlan10")]}
        net.qos[router] = plain_qos(["Ethernet0"])
    _, by_kind = proposed(net, tmp_path)
    assert {"bounce-priority", "without-pfc"} <= set(by_kind)
    assert "engine" not in by_kind
    words = ["check", str(tmp_path), "--failures", "1", "--react", "engine"]
    done = CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "is not connected: no path from alone0 to leaf0" in done.stderr


def test_infiniband_gets_options_of_opensm(tmp_path: Path) -> None:
    for seed in range(40):
        imported = tables_in(random_subnet(seed).write(tmp_path / str(seed)))
        verdict = verdict_of_imported(imported)
        if verdict.acyclic is False:
            break
    remedies = list(remedies_of(imported, verdict))
    files = [remedy.files for remedy in remedies if remedy.kind == "engine"]
    assert all("\nno_fallback TRUE\n" in entry["opensm.conf"] for entry in files)
    (updn,) = [entry for entry in files if entry["opensm.conf"].startswith("routing_engine updn\n")]
    assert "\nroot_guid_file /etc/opensm/root_guids\n" in updn["opensm.conf"]
    guids = {f"0x{switch.dpid:016x}" for switch in imported.fabric.switches}
    assert guids.issuperset(updn["root_guids"].split())
    assert updn["root_guids"]
    assert {remedy.kind for remedy in remedies} <= {"engine", "withdraw-routes"}
    command = ["check", str(tmp_path / str(seed)), "--failures", "1", "--remedies", "--json"]
    listed = json.loads(CliRunner().invoke(main, command).output)["remedies"]
    assert "engine" in {entry["kind"] for entry in listed}


def test_remedies_for_failures_are_tried_on_all_of_them(tmp_path: Path) -> None:
    folder = str(leaf_spine(4, 2).write(tmp_path / "clos"))
    export = tmp_path / "patches"
    command = ["check", folder, "--failures", "2", "--remedies", "--export", str(export), "--json"]
    done = CliRunner().invoke(main, command)
    values = json.loads(done.output)
    assert done.exit_code == 1
    assert [entry["kind"] for entry in values["remedies"]] == ["bounce-priority"]
    assert sorted(path.name for path in export.iterdir()) == ["1-bounce-priority"]
    assert (export / "1-bounce-priority" / "leaf0.json").exists()


def test_a_patched_fabric_survives_the_failures(tmp_path: Path) -> None:
    """The fabric is safe while it is intact; the patch is for what two failures do to it."""
    net, export = leaf_spine(4, 2), tmp_path / "patches"
    words = ["--failures", "2", "--json"]
    folder = str(net.write(tmp_path / "before"))
    CliRunner().invoke(main, ["check", folder, *words, "--remedies", "--export", str(export)])
    files = {file.name: file.read_text() for file in (export / "1-bounce-priority").iterdir()}
    patch(net.write(tmp_path / "after"), files)
    done = CliRunner().invoke(main, ["check", str(tmp_path / "after"), *words])
    values = json.loads(done.output)
    assert (done.exit_code, values["acyclic"], values["failures_acyclic"]) == (0, True, True)
    assert values["failures_tried"] == 105


def test_a_safe_fabric_needs_no_remedy(tmp_path: Path) -> None:
    folder = str(leaf_spine(3, 2).write(tmp_path))
    done = CliRunner().invoke(main, ["check", folder, "--remedies"])
    assert done.exit_code == 0
    assert "no remedy was found" not in done.output


def test_a_switch_whose_name_is_a_path_is_written_nowhere_else(tmp_path: Path) -> None:
    folder = bounce().write(tmp_path / "in" / "fabric")
    for file in folder.glob("*/*"):
        file.write_text(re.sub(r"((?:leaf|spine)\d)", r"../../../\1", file.read_text()))
    before = {*tmp_path.rglob("*")}
    words = ["check", str(folder), "--remedies", "--export", str(tmp_path / "in" / "out")]
    done = CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")
    assert done.exit_code == 1
    new = {path for path in {*tmp_path.rglob("*")} - before if path.is_file()}
    assert {path.parent.name for path in new} >= {"1-bounce-priority", "2-withdraw-routes"}
    assert {path.parents[2] for path in new} == {tmp_path / "in"}


def test_next_hops_that_are_more_than_a_word_are_in_no_file(tmp_path: Path) -> None:
    """Somebody will give the lines to a router's command line."""
    folder = written(broken_clos(12), tmp_path, "frr")
    for file in folder.glob("*/*"):
        file.write_text(file.read_text().replace("Ethernet", "Ethernet\\nno router bgp\\n"))
    imported = tables_in(folder)
    by_kind = {
        remedy.kind: remedy for remedy in remedies_of(imported, verdict_of_imported(imported))
    }
    assert by_kind["withdraw-routes"].files == {}
