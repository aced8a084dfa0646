"""``knotless probe`` on running fabrics, with correct and with wrong rules."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from knotless.cli.probes import named
from knotless.cli.probes._target import Target, target
from knotless.emulation.names import Names
from tests.support.fabric_fixtures import Knotless


def run(knotless: Knotless, *words: str, code: int = 0) -> Any:
    done = knotless(*words)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if "--json" in words and code in (0, 1) else done


@pytest.mark.smoke
@pytest.mark.parametrize("flow_control", [pytest.param("pause", marks=pytest.mark.long), "pfc"])
def test_a_fabric_as_planned(knotless: Knotless, names: Names, flow_control: str) -> None:
    ports = ("--port", "0", "--rest-port", "0", "--name", names.name)
    vcs = {"pause": "1", "pfc": "2"}[flow_control]
    how = ("--engine", "dor", "--vcs", vcs, "--flow-control", flow_control)
    run(knotless, "up", "ring,4", *how, *ports)
    try:
        report = run(knotless, "probe", "--name", names.name, "--json")
        assert report["ok"]
        by_probe: dict[str, list[dict[str, Any]]] = {}
        for finding in report["findings"]:
            assert finding["ok"], finding
            by_probe.setdefault(finding["probe"], []).append(finding)
        assert {probe: len(rows) for probe, rows in by_probe.items()} == {
            "path": 4,
            "forgery": 7,
            "pause": 3,
        }
        obeyed = [row["text"].startswith("obeyed") for row in by_probe["pause"]]
        assert obeyed == ([True, False, False] if flow_control == "pause" else [False, True, True])
        wrong = run(knotless, "probe", "--name", names.name, "--pair", "h1", "h9", code=2)
        assert "has no host 'h9'" in wrong.stderr
        if flow_control == "pause":
            _other_rules_are_seen(names)
    finally:
        run(knotless, "down", "--name", names.name)


def test_frames_take_the_paths_that_the_hash_gives(knotless: Knotless, names: Names) -> None:
    ports = ("--port", "0", "--rest-port", "0", "--name", names.name)
    run(knotless, "up", "hyperx,S=3x3,hosts=1", "--multipath", "ecmp", *ports)
    try:
        done = run(knotless, "probe", "--name", names.name, "--only", "path,pause")
        first, *lines = done.stdout.splitlines()
        assert first.endswith(": as planned in 7 findings")
        assert [line.split()[:2] for line in lines] == [["ok", "path"]] * 4 + [["ok", "pause"]] * 3
        assert all("as planned" in line for line in lines[:4])
    finally:
        run(knotless, "down", "--name", names.name)


def _other_rules_are_seen(names: Names) -> None:
    """Rules added by hand: frames leave their path, and tagged frames from hosts are admitted."""
    probed = target(names, [("h1", "h3")], 1)
    switch = probed.fabric.hosts[0].switch
    (before,) = named("path")(probed)
    assert before.ok
    ovs = {"OVS_RUNDIR": str(names.ovs_directory), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    rule = "table=0,priority=65000,in_port=1,actions=output:3"
    subprocess.run(
        [
            "ovs-ofctl",
            "-O",
            "OpenFlow13",
            "add-flow",
            f"unix:{names.ovs_directory / switch}.mgmt",
            rule,
        ],
        check=True,
        env=ovs,
    )
    _expect_trouble(probed)


def _expect_trouble(probed: Target) -> None:
    (after,) = named("path")(probed)
    assert not after.ok
    assert after.text.startswith("planned h1 s1:2-s2:3[")
    forged = {finding.subject: finding for finding in named("forgery")(probed)}
    stranger = forged["h1: an unknown MAC"]
    assert not stranger.ok
    assert "was forwarded over" in stranger.text


@pytest.mark.smoke
def test_nothing_to_probe(knotless: Knotless, names: Names) -> None:
    done = run(knotless, "probe", "--name", names.name, code=2)
    assert f"no fabric {names.name!r} is running" in done.stderr
    done = run(knotless, "probe", "--only", "smell", code=2)
    assert "'smell' is none of forgery, path, pause" in done.stderr
