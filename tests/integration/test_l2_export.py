"""Exported plans on switches configured from the exported files alone.

An 802.1Q bridge written as OpenFlow rules from the exported file, in Open vSwitch. Linux bridges
are in tests/kernel.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.topologies.formats.files import read
from tests.support.all_pairs import missing_pairs
from tests.support.bare_fabric import BareFabric
from tests.support.dumb_switch import flows_of
from tests.support.waiting import LIMIT_S

# 16 hosts each; four VLANs, and one for each leaf.
CASES = [("mesh,4,4", "dor"), ("clos,4,hosts=2", "updown")]


@pytest.fixture(params=CASES, ids=lambda case: case[0])
def exported(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    spec, engine = request.param
    words = ["export", spec, "--engine", engine, "--to", "l2", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return tmp_path


def all_talk(namespaces: dict[str, str], folder: Path) -> None:
    hosts = read(folder / "fabric.json").hosts
    assert len(hosts) == 16
    addresses = {host.name: host.ip for host in hosts}
    assert missing_pairs(namespaces, addresses, LIMIT_S) == set()


@pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch")
def test_sixteen_hosts_talk_over_a_bridge_made_from_the_file(exported: Path) -> None:
    with BareFabric(read(exported / "fabric.json")) as fabric:
        for switch in fabric.fabric.switches:
            rules = fabric.directory / f"{switch.name}.flows"
            rules.write_text(flows_of(exported / f"{switch.name}.json"))
            fabric.ofctl("add-flows", switch.name, str(rules))
        spaces = {h.name: fabric.host_namespace(h.name) for h in fabric.fabric.hosts}
        all_talk(spaces, exported)
        # No table had entries for ARP: broadcasts were flooded, without loops.
        replies = fabric.on("h1", "ping", "-c", "1", "-W", "5", fabric.fabric.hosts[15].ip)
        assert "1 received" in replies
        assert "duplicates" not in replies
