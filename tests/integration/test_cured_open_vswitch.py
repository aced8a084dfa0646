"""From the dumps of a running Open vSwitch to a verdict, to rules that cure it, and back again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.numbering import mac_value
from tests.support.dummy_fabric import DummyFabric
from tests.support.one_switch import Frame
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch")


def collect(fabric: DummyFabric, folder: Path) -> Path:
    """Write what docs/check-your-fabric.md lists for Open vSwitch, as the programs print it."""
    for switch in fabric.fabric.switches:
        directory = folder / switch.name
        directory.mkdir(parents=True)
        for dump in ("dump-flows", "dump-groups", "dump-ports-desc"):
            text = fabric.run("ovs-ofctl", "-O", "OpenFlow13", dump, switch.name)
            (directory / dump).write_text(text)
    edges = []
    for link in fabric.fabric.links:
        a, b = f"{link.a}-{link.a_port}", f"{link.b}-{link.b_port}"
        edges.append((link.a, a, link.b, b))
    edges += [
        (directory.switch, directory.name, directory.name, directory.mac)
        for directory in fabric.fabric.hosts
    ]
    listed = [
        {
            "node1": {"hostname": near, "interfaceName": port},
            "node2": {"hostname": peer, "interfaceName": peer_port},
        }
        for near, port, peer, peer_port in edges
    ]
    (folder / "layer1_topology.json").write_text(json.dumps({"edges": listed}))
    return folder


def checked(status: int, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "knotless", "check", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == status, (words, done.stderr)
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict


def test_a_cyclic_fabric_is_cured(tmp_path: Path) -> None:
    plan = make_plan(load("ring,4"), "minimal")
    fabric = DummyFabric(plan.fabric, compile_rules(plan))
    try:
        fabric.start()
        before, cures = str(collect(fabric, tmp_path / "before")), tmp_path / "cures"
        verdict = checked(1, before, "--remedies", "--export", str(cures))
        assert (verdict["acyclic"], verdict["undelivered"], verdict["missing"]) == (False, 0, [])
        cured = cures / "1-engine"
        assert checked(0, str(cured), "--flow-control", "pause")["acyclic"] is True
        fabric.load(cured)
        after = str(collect(fabric, tmp_path / "after"))
        verdict = checked(0, after, "--failures", "1")
        assert (verdict["acyclic"], verdict["undelivered"], verdict["missing"]) == (True, 0, [])
        assert verdict["failures_acyclic"] is True
        for source in plan.fabric.hosts:
            for target in plan.fabric.hosts:
                if source != target:
                    frame = Frame(mac_value(target.mac), mac_value(source.mac), 0x0800, ())
                    assert fabric.trace(source.switch, source.port, frame) == [target.name]
    finally:
        fabric.stop()
