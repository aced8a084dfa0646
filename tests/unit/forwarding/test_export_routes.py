"""Plans for IP routers: their files, read back by the importers, are the plan."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.cli.commands.export import differences, read_back
from knotless.cli.main import main
from knotless.forwarding.routed.files import FILES
from knotless.forwarding.routed.tables import router_tables
from knotless.importers.paths import read_paths
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan

CASES = [
    "fattree2,4 --multipath ecmp",
    "fattree2,4 --select low-port",
    "fattree3,4 --multipath ecmp",
    "clos3,4,over=3 --multipath ecmp",
    "hyperx,S=4x4,hosts=2 --engine updown --multipath ecmp",
    "hyperx,S=3x3,K=2 --select low-port",
    "torus,4,4 --engine updown",
    "random,12,degree=3,hosts=2,seed=4 --engine updown --select low-port",
]


def run(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(words))


def paths_of(folder: Path, a: str, b: str) -> dict[tuple[str, str], float]:
    """Return the share of packets on each link by what ``check`` reads in the folder."""
    read = read_paths([folder], routes_by="static")
    hosts = {host.switch: host.name for host in read.fabric.hosts}
    state = read.traffics[0].state
    target = state.destination_number(hosts[a], hosts[b])
    assert target is not None
    channels = state.channels
    return {
        (channels.names[channels.tail[hop.channel]], channels.names[channels.head[hop.channel]]): p
        for hop, p in state.shares(hosts[a], target)
        if hop.channel < len(channels)
    }


@pytest.mark.parametrize("target", FILES)
@pytest.mark.parametrize("arguments", CASES)
def test_files_of_routers_are_read_back_as_the_plan(
    arguments: str, target: str, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    done = run("export", *arguments.split(), "--to", target, "--out", out, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["safe"] is True
    checked = run("check", out, "--routes", "static", "--json")
    assert checked.exit_code == 0, checked.stderr
    answer = json.loads(checked.stdout)
    assert answer["flow_control"] == ("pfc" if target == "sonic" else "pause")
    assert (answer["undelivered"], answer["missing"]) == (0, [])


@pytest.mark.parametrize("target", FILES)
def test_packets_are_divided_as_in_the_plan(target: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("export", "fattree3,4", "--multipath", "ecmp", "--to", target, "--out", str(out))
    plan = make_plan(load("fattree3,4"), PlanRequest.from_options(multipath="ecmp"))
    state = CheckedPlan(plan).state
    names = plan.channels.names
    for a, b in (("h1", "h3"), ("h1", "h16"), ("h9", "h2")):
        hosts = plan.fabric.hosts
        ends = [hosts[plan.fabric.host_index[name]].switch for name in (a, b)]
        target_number = state.destination_number(a, b)
        assert target_number is not None
        planned = {
            (names[plan.channels.tail[hop.channel]], names[plan.channels.head[hop.channel]]): p
            for hop, p in state.shares(a, target_number)
            if hop.channel < len(plan.channels)
        }
        assert paths_of(out, ends[0], ends[1]) == planned


def _damaged(plan: Plan, target: str, router: str, old: str, new: str) -> list[str]:
    files = FILES[target]("net", router_tables(plan))
    path = next(name for name in files if name.startswith(f"{router}/"))
    assert old in files[path]
    files[path] = files[path].replace(old, new, 1)
    return list(differences(CheckedPlan(plan).state, read_back(files), target))


@pytest.mark.parametrize(
    ("target", "old", "new"),
    [
        ("frr", "ip route 10.0.2.0/24 100.64.0.1\n", ""),
        ("frr", "ip route 10.0.2.0/24 100.64.0.1\n", "ip route 10.0.2.0/24 blackhole\n"),
        ("sonic", '"ifname": "Ethernet16,Ethernet20', '"ifname": "Ethernet20,Ethernet20'),
    ],
)
def test_a_route_that_is_missing_or_wrong_is_found(target: str, old: str, new: str) -> None:
    plan = make_plan(load("fattree2,4"), PlanRequest.from_options(multipath="ecmp"))
    assert _damaged(plan, target, "s1", old, new)


def _with_ip(host: str, ip: str, folder: Path) -> str:
    file = folder / "fabric.json"
    run("topology", "fattree2,2", "--out", str(file))
    data = json.loads(file.read_text())
    for entry in data["hosts"]:
        if entry["name"] == host:
            entry["ip"] = ip
    file.write_text(json.dumps(data))
    return str(file)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("torus,5,5 --engine dor --vcs 2", "virtual channels"),
        ("fattree2,4", "split by source"),
        ("fattree2,4 --multipath spray", "not spray"),
        ("fattree2,4 --multipath ecmp --multicast 1=h1,h5", "--multicast"),
        ("ring,6 --engine minimal --multipath ecmp", "CAN DEADLOCK"),
        ("hub,3", "hub"),
    ],
)
def test_what_routers_cannot_do_is_refused(arguments: str, says: str, tmp_path: Path) -> None:
    done = run("export", *arguments.split(), "--to", "frr", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_addresses_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for ip, says in (("10.0.2.9", "networks of its own"), ("100.64.0.9", "links of routers")):
        spec = _with_ip("h1", ip, tmp_path)
        done = run("export", spec, "--multipath", "ecmp", "--to", "frr", "--out", str(tmp_path))
        assert done.exit_code == 2
        assert says in done.stderr


def test_a_folder_with_another_fabric_is_refused(tmp_path: Path) -> None:
    words = ["--multipath", "ecmp", "--to", "sonic", "--out", str(tmp_path / "out")]
    assert run("export", "fattree2,4", *words).exit_code == 0
    assert run("export", "fattree2,4", *words).exit_code == 0
    done = run("export", "fattree2,2", *words)
    assert done.exit_code == 2
    assert "of another fabric" in done.stderr
    shutil.rmtree(tmp_path / "out")
    assert run("export", "fattree2,2", *words).exit_code == 0
