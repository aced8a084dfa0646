"""Plans for ordinary switches, carried out by an 802.1Q bridge that knows only the export."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.main import main
from routing.flowdir import read_tags
from routing.l2 import export
from routing.ofctl import parse
from routing.plan import make_plan
from tests.dumb_switch import flows_of
from topologies import load
from topologies.errors import PlanError
from topologies.files import read
from verification.check import check

CASES = [
    "mesh,4,4 --engine dor",
    "mesh,2,4,hosts=2 --engine dor",
    "torus,4,4 --engine dor --vcs 1 --select low-port",
    "torus,4,4,hosts=2 --engine minimal --tagging host",
    "lsft,2",
    "clos,3,hosts=2 --engine updown",
    "fattree,2,4,2 --tagging host",
    "random,12,degree=3,seed=4 --engine updown --tagging host",
    "flat,5",
]


def run(arguments: str, folder: Path) -> Result:
    words = ["export", *arguments.split(), "--to", "l2", "--out", str(folder), "--json"]
    return CliRunner(mix_stderr=False).invoke(main, words)


@pytest.mark.parametrize("arguments", CASES)
def test_an_ordinary_switch_delivers_everything_once(arguments: str, tmp_path: Path) -> None:
    done = run(arguments, tmp_path)
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    fabric = read(tmp_path / "fabric.json")
    rules = {s.name: parse(flows_of(tmp_path / f"{s.name}.json"), "") for s in fabric.switches}
    tags = read_tags(fabric, tmp_path)
    assert (tags is not None) == ("--tagging host" in arguments)
    verdict = check(fabric, rules, flow_control="pause", tags=tags)
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0), verdict.problems
    assert verdict.acyclic == said["acyclic"] == (said["cycle"] == [])


def test_files_say_who_is_where(tmp_path: Path) -> None:
    said = json.loads(run("mesh,4,4 --engine dor", tmp_path).stdout)
    assert (said["switches"], said["vlans"], said["acyclic"]) == (16, 4, True)
    switch = json.loads((tmp_path / "s6.json").read_text())
    host, *links = switch["ports"]
    # Row 2 of the mesh: s5 s6 s7 s8. Its x links are in its own VLAN alone, y links in all.
    assert (host["peer"], host["pvid"], host["untagged"]) == ("h6", 3, [2, 3, 4, 5])
    assert {port["peer"].split(":")[0]: port["tagged"] for port in links} == {
        "s7": [3],
        "s5": [3],
        "s10": [2, 3, 4, 5],
        "s2": [2, 3, 4, 5],
    }
    assert all(port["pvid"] is None and port["untagged"] == [] for port in links)


def test_bridge_lines_say_the_same_as_the_json(tmp_path: Path) -> None:
    run("mesh,2,4,hosts=2 --engine dor", tmp_path)
    for name in ("s1", "s5"):
        switch = json.loads((tmp_path / f"{name}.json").read_text())
        lines = (tmp_path / f"{name}.bridge").read_text().splitlines()
        for port in switch["ports"]:
            device = f"dev {name}-eth{port['port']}"
            wanted = {f"bridge vlan add {device} vid {vlan}" for vlan in port["tagged"]}
            wanted |= {
                f"bridge vlan add {device} vid {v} {'pvid ' * (v == port['pvid'])}untagged"
                for v in port["untagged"]
            }
            assert {
                line for line in lines if line.startswith(f"bridge vlan add {device}")
            } == wanted
            assert f"bridge vlan del {device} vid 1" in lines
        entries = {
            f"bridge fdb add {e['mac']} dev {name}-eth{e['port']} master static vlan {e['vlan']}"
            for e in switch["macs"]
        }
        assert {line for line in lines if " fdb " in line} == entries


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("torus,5,5 --engine dor", "ordinary switches cannot change priorities, but dor uses 2"),
        ("mesh,4,4 --engine dor --vlans default", "VLAN 2 has a loop by way of the link"),
        ("fattree,2,4,2", "close a loop"),
        ("mesh,4,4 --max-vlans 3", "needs more than 3 VLANs"),
        ("mesh,4,4 --max-vlans 4095", "max_vlans: input should be less than or equal to 4093"),
        ("mesh,4,4 --vlans forest", "vlans: input should be 'default' or 'tree'"),
        ("lsft,6", "power of a prime"),
        ("no/such.json", "cannot be read"),
    ],
)
def test_what_ordinary_switches_cannot_do_is_refused(
    arguments: str, says: str, tmp_path: Path
) -> None:
    done = run(arguments, tmp_path / "out")
    assert done.exit_code == 2
    assert says in done.stderr
    assert (done.stderr.count("\n"), done.stdout) == (1, "")
    assert not (tmp_path / "out").exists()


def test_paths_that_part_by_their_source_are_refused() -> None:
    """No assignment of ours puts them into one VLAN; somebody else's might."""
    plan = make_plan(load("clos,4,hosts=2"), "minimal")
    assert plan.vlan_count > 1
    with pytest.raises(PlanError, match="part by their source"):
        export(replace(plan, pair_vlans=plan.pair_vlans * 0 + 2))


def test_a_target_or_directory_that_is_none() -> None:
    runner = CliRunner(mix_stderr=False)
    done = runner.invoke(main, ["export", "ring,4", "--to", "l3", "--out", "x"])
    assert (done.exit_code, "'l3' is not" in done.stderr) == (2, True)
    done = runner.invoke(main, ["export", "ring,4", "--to", "l2", "--out", "/dev/null/x"])
    assert (done.exit_code, "cannot be written" in done.stderr) == (2, True)
