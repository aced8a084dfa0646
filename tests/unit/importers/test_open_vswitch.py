"""Dumps of Open vSwitch by themselves: the verdict is that of the rules; what is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.check import verdict_of
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.ovs_dumps import write_ovs


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


def complaint(folder: Path) -> str:
    done = CliRunner(mix_stderr=False).invoke(main, ["check", str(folder)], prog_name="knotless")
    assert done.exit_code == 2
    return done.stderr


def written(folder: Path, spec: str, engine: str, **how: bool) -> Path:
    plan = make_plan(load(spec), engine)
    return write_ovs(plan.fabric, compile_rules(plan), folder, **how)


@pytest.mark.parametrize(
    ("spec", "engine", "named", "hosts"),
    [
        ("ring,4", "minimal", True, True),
        ("ring,4", "updown", False, True),
        ("mesh,2,2,hosts=2", "dor", True, False),
        ("torus,3,3", "minimal", False, False),
    ],
)
def test_the_verdict_is_that_of_the_rules(
    spec: str, engine: str, named: bool, hosts: bool, tmp_path: Path
) -> None:
    plan = make_plan(load(spec), engine)
    expected = verdict_of(state_of_rules(plan.fabric, compile_rules(plan)), "pause")
    verdict = judged(written(tmp_path, spec, engine, named=named, hosts=hosts))
    assert verdict.missing == []
    assert (verdict.acyclic, verdict.pairs) == (expected.acyclic, expected.pairs)
    assert len(verdict.cycle) == len(expected.cycle)
    assert (verdict.undelivered, verdict.max_channel_load) == (0, expected.max_channel_load)


def test_what_is_behind_a_port_can_send_to_all(tmp_path: Path) -> None:
    """A cable to a device without files and without an address: nothing is called safe."""
    folder = written(tmp_path, "ring,4", "updown")
    cables = json.loads((folder / "cables.json").read_text())
    node = {"hostname": "s2", "interfaceName": "s2-eth9"}
    far = {"hostname": "core1", "interfaceName": "Ethernet7"}
    cables["edges"].append({"node1": node, "node2": far})
    (folder / "cables.json").write_text(json.dumps(cables))
    ports = folder / "s2" / "ports"
    ports.write_text(ports.read_text() + " 9(s2-eth9): addr:02:aa:00:00:00:09\n")
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert verdict.missing == ["what is behind s2:9: no address and no files"]


def test_addresses_from_rules(tmp_path: Path) -> None:
    """Rules that match one address and send it to one port show where its host is."""
    ends = {"s1": (1, 2), "s2": (2, 1)}
    for name, (one, other) in ends.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "dump").write_text(
            f" cookie=0x0, duration=5.1s, table=0, n_packets=3, n_bytes=9, priority=9,"
            f"dl_dst=02:00:00:00:00:0{name[1]} actions=output:{one}\n"
            f" cookie=0x0, duration=5.1s, table=0, n_packets=3, n_bytes=9, priority=1"
            f" actions=output:{other}\n"
        )
    edge = {
        "node1": {"hostname": "s1", "interfaceName": "2"},
        "node2": {"hostname": "s2", "interfaceName": "1"},
    }
    (tmp_path / "cables.json").write_text(json.dumps({"edges": [edge]}))
    verdict = judged(tmp_path)
    assert (verdict.pairs, verdict.undelivered) == (2, 0)
    assert verdict.acyclic is True


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("priority=5,tun_id=0x7 actions=output:1", "match 'tun_id' is not supported"),
        ("priority=5 actions=mod_nw_ttl:3,NORMAL", "action 'mod_nw_ttl:3' is not supported"),
        ("priority=5 actions=resubmit(,3)", "is not supported"),
    ],
)
def test_what_is_not_understood_is_named_with_its_line(
    rule: str, says: str, tmp_path: Path
) -> None:
    folder = written(tmp_path, "ring,4", "updown")
    flows = folder / "s2" / "flows"
    lines = flows.read_text().splitlines()
    lines.insert(2, f" cookie=0x0, table=0, {rule}")
    flows.write_text("\n".join(lines))
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert any(f"{flows}: line 3: " in text and says in text for text in verdict.missing)


def failures_of(folder: Path, *words: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["check", str(folder), "--failures", "1", *words, "--json"])
    assert done.exit_code < 2
    answer: dict[str, Any] = json.loads(done.output)
    return answer


def test_failures_are_those_of_the_rules(tmp_path: Path) -> None:
    """Read from dumps, the failures have the verdicts of the same rules in a folder of ours."""
    folder = written(tmp_path / "dumps", "ring,4", "minimal")
    rules = str(tmp_path / "rules")
    written_rules = ["flows", "ring,4", "--engine", "minimal", "--out", rules]
    assert CliRunner().invoke(main, written_rules).exit_code == 0
    ours, theirs = failures_of(Path(rules)), failures_of(folder)
    assert theirs["reaction"] == ours["reaction"] == "static"
    assert theirs["failures_intact"] == ours["failures_intact"]

    def by_parts(answer: dict[str, Any]) -> list[tuple[list[str], bool, int]]:
        names = [sorted(one["failed"][0].split("-")) for one in answer["failures"]]
        values = [(one["acyclic"], one["undelivered"]) for one in answer["failures"]]
        return sorted((name, *value) for name, value in zip(names, values, strict=True))

    assert by_parts(theirs) == by_parts(ours)
    assert {failure["acyclic"] for failure in theirs["failures"]} == {True}
    assert theirs["failures_intact"]["acyclic"] is False


def test_what_is_not_known_is_not_known_after_failures(tmp_path: Path) -> None:
    folder = written(tmp_path, "ring,4", "updown")
    assert failures_of(folder)["failures_acyclic"] is True
    flows = folder / "s2" / "flows"
    flows.write_text(flows.read_text() + " table=0, priority=5 actions=NORMAL\n")
    answer = failures_of(folder)
    assert {failure["acyclic"] for failure in answer["failures"]} == {None}
    assert answer["failures_intact"]["acyclic"] is None


def test_other_reactions(tmp_path: Path) -> None:
    folder = written(tmp_path, "ring,4", "minimal")
    answer = failures_of(folder, "--react", "engine", "--engine", "updown")
    assert (answer["reaction"], answer["failures_acyclic"]) == ("engine updown", True)
    words = ["check", str(folder), "--failures", "1", "--react", "local"]
    done = CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")
    assert done.exit_code == 2
    assert "--react local: for OpenFlow rules, static or engine" in done.stderr


def test_the_rules_of_an_engine_are_exported_and_read_back(tmp_path: Path) -> None:
    folder = written(tmp_path / "dumps", "ring,4", "minimal")
    export = tmp_path / "cures"
    words = ["check", str(folder), "--remedies", "--export", str(export), "--json"]
    done = CliRunner().invoke(main, words)
    remedies = json.loads(done.output)["remedies"]
    assert {remedy["kind"] for remedy in remedies} == {"engine"}
    folders = sorted(export.iterdir())
    assert len(folders) == len(remedies) > 0
    for number, remedy in enumerate(folders):
        back = CliRunner().invoke(main, ["check", str(remedy), "--flow-control", "pause", "--json"])
        cured = json.loads(back.output)
        assert (back.exit_code, cured["acyclic"], cured["undelivered"]) == (0, True, 0)
        flows = [file.read_text().count("\n") for file in remedy.glob("*.flows")]
        assert sum(flows) == remedies[number]["cost"]["routes"]


def test_what_is_missing(tmp_path: Path) -> None:
    folder = written(tmp_path, "ring,4", "updown")
    (folder / "s1" / "flows").unlink()
    assert "the rules of s1" in judged(folder).missing
    cables = json.loads((folder / "cables.json").read_text())["edges"]
    of_hosts = [cable for cable in cables if cable["node2"]["hostname"].startswith("h")]
    (folder / "cables.json").write_text(json.dumps({"edges": of_hosts}))
    assert "the cables between the switches" in judged(folder).missing
    (folder / "cables.json").unlink()
    assert "no address of a host is known" in complaint(folder)
    for name in ("s2", "s3", "s4"):
        (folder / name / "flows").unlink()
        (folder / name / "groups").unlink()
    (folder / "s1" / "groups").unlink()
    assert "there are no rules" in complaint(folder)


@pytest.mark.parametrize(("priority", "acyclic"), [(4, True), (5, False)])
def test_rules_of_equal_priority_are_choices(priority: int, acyclic: bool, tmp_path: Path) -> None:
    """Three switches in a ring; a rule of equal priority may send all frames on clockwise."""
    edges = []
    for n in range(3):
        folder = tmp_path / f"s{n}"
        folder.mkdir()
        own = f"02:00:00:00:00:0{n}"
        rules = [f"table=0, priority=9,dl_dst={own} actions=output:1"]
        rules += [
            f"table=0, priority=5,dl_dst=02:00:00:00:00:0{(n + way) % 3} actions=output:{port}"
            for way, port in ((1, 2), (2, 3))
        ]
        hosts = "dl_dst=02:00:00:00:00:00/ff:ff:ff:ff:ff:fc"
        rules.append(f"table=0, priority={priority},{hosts} actions=output:2")
        rules.append("table=0, priority=6,dl_dst=02:00:00:00:00:03 actions=drop")  # no host has it
        (folder / "flows").write_text("".join(f" cookie=0x0, {rule}\n" for rule in rules))
        ends = [(f"s{n}", "2"), (f"s{(n + 1) % 3}", "3")], [(f"s{n}", "1"), (f"h{n}", own)]
        edges += [
            {
                f"node{side}": {"hostname": name, "interfaceName": port}
                for side, (name, port) in enumerate(cable, 1)
            }
            for cable in ends
        ]
    (tmp_path / "cables.json").write_text(json.dumps({"edges": edges}))
    verdict = judged(tmp_path)
    assert (verdict.acyclic, verdict.undelivered) == (acyclic, 0)
    assert verdict.missing == []
