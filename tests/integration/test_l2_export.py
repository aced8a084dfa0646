"""Exported plans on switches that know nothing of OpenFlow plans: only what the files say.

An 802.1Q bridge written as OpenFlow rules from the exported file, in Open vSwitch, everywhere;
Linux bridges where the kernel has VLAN filtering.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.main import main
from tests.dumb_switch import flows_of
from tests.integration.all_pairs import missing_pairs
from tests.integration.bare_fabric import BareFabric
from topologies.files import read

DEADLINE_S = 60.0
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
    assert missing_pairs(namespaces, addresses, DEADLINE_S) == set()


@pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch")
def test_sixteen_hosts_talk_over_a_bridge_made_from_the_file(exported: Path) -> None:
    with BareFabric(read(exported / "fabric.json")) as fabric:
        for switch in fabric.fabric.switches:
            rules = fabric.directory / f"{switch.name}.flows"
            rules.write_text(flows_of(exported / f"{switch.name}.json"))
            fabric.ofctl("add-flows", switch.name, str(rules))
        spaces = {h.name: fabric.host_namespace(h.name) for h in fabric.fabric.hosts}
        all_talk(spaces, exported)
        # ARP was no table entry of anybody: broadcasts have flooded, without going round.
        replies = fabric.on("h1", "ping", "-c", "1", "-W", "5", fabric.fabric.hosts[15].ip)
        assert "1 received" in replies
        assert "duplicates" not in replies


@pytest.fixture
def linux_bridges(exported: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """The fabric of Linux bridges, told what the exported commands say."""
    fabric = read(exported / "fabric.json")
    spaces: list[str] = []
    mine = f"kl{os.getpid()}"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def space(name: str) -> str:
        ip("netns", "add", f"{mine}-{name}")
        spaces.append(f"{mine}-{name}")
        return f"{mine}-{name}"

    try:
        switches = space("switches")
        probe = ["ip", "-n", switches, "link", "add", "probe", "type", "bridge"]
        if subprocess.run([*probe, "vlan_filtering", "1"], capture_output=True).returncode:
            pytest.skip("this kernel's bridge has no VLAN filtering: Linux bridges are NOT tested")
        ip("-n", switches, "link", "del", "probe")
        for switch in fabric.switches:
            ip("-n", switches, "link", "add", switch.name, "type", "bridge")
        ends = [((link.a, link.a_port), (link.b, link.b_port)) for link in fabric.links]
        for (a, a_port), (b, b_port) in ends:
            names = f"{a}-eth{a_port}", f"{b}-eth{b_port}"
            ip("-n", switches, "link", "add", names[0], "type", "veth", "peer", "name", names[1])
        for host in fabric.hosts:
            here, port = space(host.name), f"{host.switch}-eth{host.port}"
            peer = ("peer", "name", "eth0", "address", host.mac, "netns", here)
            ip("-n", switches, "link", "add", port, "type", "veth", *peer)
            ip("-n", here, "addr", "add", f"{host.ip}/8", "dev", "eth0")
            ip("-n", here, "link", "set", "eth0", "up")
            subprocess.run(
                ["ip", "netns", "exec", here, "ethtool", "-K", "eth0", "tx", "off"], check=True
            )
        for switch in fabric.switches:
            ports = [*fabric.hosts_at[switch.name], *fabric.neighbours[switch.name]]
            for port in (f"{switch.name}-eth{number}" for number in ports):
                ip("-n", switches, "link", "set", port, "master", switch.name, "up")
            ip("-n", switches, "link", "set", switch.name, "up")
            for line in (exported / f"{switch.name}.bridge").read_text().splitlines():
                subprocess.run(["ip", "netns", "exec", switches, *line.split()], check=True)
        yield {host.name: f"{mine}-{host.name}" for host in fabric.hosts}, exported
    finally:
        for name in reversed(spaces):
            subprocess.run(["ip", "netns", "delete", name], check=False)


def test_sixteen_hosts_talk_over_linux_bridges(
    linux_bridges: tuple[dict[str, str], Path],
) -> None:
    all_talk(*linux_bridges)
