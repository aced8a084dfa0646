"""Plans for ordinary switches, executed by an 802.1Q bridge that has only the export."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.base.errors import PlanError
from knotless.cli.main import main
from knotless.forwarding.dot1q.files import read_folder
from knotless.forwarding.dot1q.from_plan import export
from knotless.forwarding.dot1q.model import L2Fabric
from knotless.forwarding.dot1q.target import targets
from knotless.forwarding.openflow.directory import read_tags
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.topologies.formats.files import read
from knotless.verification.check import check
from tests.support.dot1q_exports import EXPORTS, FABRICS, export_to, verdicts_of
from tests.support.dumb_switch import flows_of

CASES = [
    "mesh,4,4 --engine dor",
    "mesh,2,4,hosts=2 --engine dor",
    "torus,4,4 --engine dor --vcs 1 --select low-port --allow-deadlock",
    "torus,4,4,hosts=2 --engine minimal --tagging host --allow-deadlock",
    "lsft,2",
    "clos,3,hosts=2 --engine updown",
    "clos,4,hosts=2 --engine updown --tagging host",
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
    answer = json.loads(done.stdout)
    fabric = read(tmp_path / "fabric.json")
    rules = {s.name: parse(flows_of(tmp_path / f"{s.name}.json"), "") for s in fabric.switches}
    tags = read_tags(fabric, tmp_path)
    assert (tags is not None) == ("--tagging host" in arguments)
    verdict = check(fabric, rules, flow_control="pause", tags=tags)
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0), verdict.problems
    assert verdict.acyclic == answer["acyclic"] == (answer["cycle"] == [])


def test_files_say_who_is_where(tmp_path: Path) -> None:
    answer = json.loads(run("mesh,4,4 --engine dor", tmp_path).stdout)
    assert (answer["switches"], answer["vlans"], answer["acyclic"]) == (16, 4, True)
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


@pytest.mark.parametrize("arguments", EXPORTS)
def test_exported_files_deliver_everything_once_and_cannot_deadlock(
    arguments: str, tmp_path: Path
) -> None:
    answer = export_to(tmp_path, arguments)
    exported, *others = (read_folder(tmp_path, kind) for kind in targets())
    assert others
    assert all(other == exported for other in others)
    verdicts = verdicts_of(exported)
    assert list(verdicts) == (["tagged"] if "--tagging host" in arguments else []) + ["untagged"]
    for verdict in verdicts.values():
        assert (verdict.pairs, verdict.failed) == (answer["pairs"], 0), verdict.problems
        assert (verdict.cycle, verdict.problems) == ([], [])
    hosts = len(exported.fabric.hosts)
    assert answer["pairs"] == hosts * (hosts - 1)
    assert (answer["undelivered"], answer["broadcasts_undelivered"], answer["cycle"]) == (0, 0, [])


def test_the_twenty_fabrics_are_exported_with_both_taggings() -> None:
    assert len(FABRICS) == len({spec for spec, *_ in FABRICS}) == 20
    assert len(set(EXPORTS)) == 40


def test_the_readme_gives_the_order_of_the_files(tmp_path: Path) -> None:
    export_to(tmp_path, "clos,3,hosts=2 --engine updown --tagging host")
    text = (tmp_path / "README.txt").read_text()
    places = [
        text.index(words)
        for words in ("every port", "Apply its file to each", "Bring the ports up")
    ]
    assert places == sorted(places)
    assert "tags.json" in text
    # Tags of an earlier export would be those of other tables.
    export_to(tmp_path, "clos,3,hosts=2 --engine updown")
    assert not (tmp_path / "tags.json").exists()
    assert "tags.json" not in (tmp_path / "README.txt").read_text()


def test_the_verdict_is_the_first_line(tmp_path: Path) -> None:
    words = ["export", "mesh,3,3", "--engine", "dor", "--to", "l2", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    lines = done.output.splitlines()
    assert lines[0].endswith(": cannot deadlock under PAUSE")
    assert any(line.endswith("every broadcast arrives exactly once") for line in lines)
    words[1:4] = ["torus,4,4", "--engine", "minimal", "--tagging", "host", "--allow-deadlock"]
    done = CliRunner().invoke(main, words)
    answer, cycle = done.output.splitlines()[:2]
    assert answer.endswith(": CAN DEADLOCK under PAUSE")
    assert cycle.startswith("  cycle of 4 channels: s1:")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("torus,5,5 --engine dor", "ordinary switches cannot change priorities, but dor uses 2"),
        ("mesh,4,4 --engine dor --vlans default", "VLAN 2 has a loop through the link"),
        ("fattree,2,4,2", "form a loop"),
        ("mesh,4,4 --max-vlans 3", "needs more than 3 VLANs"),
        ("mesh,4,4 --max-vlans 4095", "max_vlans: 4095 is not at most 4,093"),
        ("mesh,4,4 --vlans forest", "vlans: 'forest' is not one of 'default', 'tree'"),
        ("torus,4,4 --engine minimal --tagging host", "CAN DEADLOCK under PAUSE: s1:2/0 -> s2:2/0"),
        ("clos,4,hosts=2 --engine updown --tagging host --max-vlans 5", "needs more than 5 VLANs"),
        ("hub,4", "is a repeater hub, which cannot be exported"),
        ("lsft,6", "power of a prime"),
        ("no/such.json", "cannot be read"),
    ],
)
def test_plans_beyond_ordinary_switches_are_refused(
    arguments: str, says: str, tmp_path: Path
) -> None:
    done = run(arguments, tmp_path / "out")
    assert done.exit_code == 2
    assert says in done.stderr
    assert (done.stderr.count("\n"), done.stdout) == (1, "")
    assert not (tmp_path / "out").exists()


def test_tables_that_do_not_deliver_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without static entries every unicast is flooded: it arrives, but also elsewhere."""

    def without_macs(plan: Plan) -> L2Fabric:
        meant = export(plan)
        return replace(meant, switches=tuple(replace(s, macs={}) for s in meant.switches))

    monkeypatch.setattr("knotless.cli.commands.export.export", without_macs)
    for tagging, how in (("switch", "untagged"), ("host", "tagged")):
        done = run(f"mesh,2,2,hosts=2 --engine dor --tagging {tagging}", tmp_path / "out")
        assert done.exit_code == 2
        assert f"everything that hosts send {how} exactly once (56 pairs, 0 broad" in done.stderr
        assert ": the frame arrives at h" in done.stderr
        assert not (tmp_path / "out").exists()


def test_paths_that_part_by_their_source_are_refused() -> None:
    """None of our assignments puts them into one VLAN; a foreign one may."""
    plan = make_plan(load("clos,4,hosts=2"), "minimal")
    assert plan.vlan_count > 1
    with pytest.raises(PlanError, match="split by source"):
        export(replace(plan, pair_vlans=plan.pair_vlans * 0 + 2))


def test_wrong_targets_and_directories_are_refused() -> None:
    runner = CliRunner(mix_stderr=False)
    done = runner.invoke(main, ["export", "ring,4", "--to", "l3", "--out", "x"])
    assert (done.exit_code, "'l3' is not" in done.stderr) == (2, True)
    done = runner.invoke(main, ["export", "ring,4", "--to", "l2", "--out", "/dev/null/x"])
    assert (done.exit_code, "cannot be written" in done.stderr) == (2, True)
