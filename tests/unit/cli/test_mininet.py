"""Mininet's API on our fabrics while nothing runs: what scripts describe, what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mininet.net")

from mininet.link import TCLink
from mininet.node import (
    Controller,
    CPULimitedHost,
    Host,
    OVSBridge,
    OVSController,
    OVSSwitch,
    RemoteController,
    Ryu,
)
from mininet.topo import LinearTopo, Topo
from mininet.topolib import TorusTopo, TreeTopo

from knotless import mininet
from knotless.base.errors import EmulationError, KnotlessError
from knotless.emulation.described_controller import controller_of
from knotless.emulation.fabric_topo import FabricTopo
from knotless.emulation.network import EmulatedFabric
from knotless.mininet import Knotless
from knotless.topologies import load
from tests.support import REPOSITORY
from tests.support.stderr_lines import our_lines


@pytest.fixture(autouse=True)
def no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the signal handlers and the hook of this process alone."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(mininet, "_end_in_good_order", lambda: None)


class Diamond(Topo):  # type: ignore[misc]  # Mininet is not typed
    """Four switches in a ring, with parameters on every link."""

    def build(self, bw: float = 10) -> None:
        switches = [self.addSwitch(f"s{i}") for i in (1, 2, 3, 4)]
        for i, switch in enumerate(switches, 1):
            host = self.addHost(f"h{i}", mac=f"00:00:00:00:00:0{i}", ip=f"192.0.2.{i}/24")
            self.addLink(host, switch, bw=bw, delay="1ms")
        for a, b in ((0, 1), (1, 2), (2, 3), (3, 0)):
            self.addLink(switches[a], switches[b], bw=2 * bw, delay="2ms", max_queue_size=100)


def test_a_topo_becomes_a_fabric() -> None:
    net = Knotless(topo=Diamond(bw=5), link=TCLink, flow_control="pfc", engine="updown")
    fabric = net.fabric
    assert fabric.name == "Diamond"
    assert {link.rate_mbps for link in fabric.links} == {10.0}
    assert {link.delay_us for link in fabric.links} == {2000.0}
    assert [host.ip for host in fabric.hosts] == [f"192.0.2.{i}" for i in (1, 2, 3, 4)]
    assert net.described.prefixes["h1"] == 24
    assert set(net.described.queue_bytes) == {link.name for link in fabric.links}
    ports = {(link.a, link.a_port) for link in fabric.links}
    assert ports == {("s1", 2), ("s2", 3), ("s3", 3), ("s4", 3)}


@pytest.mark.parametrize("topo", [TreeTopo(2, 3), TorusTopo(3, 3), LinearTopo(k=4, n=2)])
def test_mininets_own_topologies_have_their_ports_and_dpids(topo: Any) -> None:
    net = Knotless(topo=topo, autoSetMacs=True)
    fabric = net.fabric
    assert {s.name: f"{s.dpid:016x}" for s in fabric.switches} == {
        node.name: node.dpid for node in net.switches
    }
    wanted = {
        frozenset([(info["node1"], info["port1"]), (info["node2"], info["port2"])])
        for _, _, info in topo.links(withInfo=True)
    }
    made = {frozenset([(li.a, li.a_port), (li.b, li.b_port)]) for li in fabric.links}
    made |= {frozenset([(h.name, 0), (h.switch, h.port)]) for h in fabric.hosts}
    assert made == wanted
    assert [host.mac for host in fabric.hosts][:2] == ["00:00:00:00:00:01", "00:00:00:00:00:02"]
    assert [host.ip for host in fabric.hosts][:2] == ["10.0.0.1", "10.0.0.2"]


@pytest.mark.parametrize("spec", ["torus,4,4", "fattree2,8", "ring,4,rate=5,delay=100"])
def test_our_own_fabrics_stay_what_they_are(spec: str) -> None:
    fabric = load(spec)
    net = Knotless(topo=FabricTopo(fabric, with_lines=True))
    assert net.fabric == fabric
    assert net.fabric.family == fabric.family


def test_our_own_fabrics_can_be_changed_before_they_run() -> None:
    net = Knotless(topo=FabricTopo(load("ring,4")))
    net.addLink(net.addHost("h9"), "s1", port2=9)
    net.delLink(net.linksBetween(net["s1"], net["s2"])[0])
    assert [host.name for host in net.fabric.hosts] == ["h1", "h2", "h3", "h4", "h9"]
    assert len(net.fabric.links) == 3
    assert net.fabric.family is None


def test_a_fabric_is_built_by_hand() -> None:
    net = Knotless(controller=None, link=partial(TCLink, bw=7), delay_us=50)
    h1, h2 = net.addHost("h1"), net.addHost("h2", ip="10.0.0.77")
    s1 = net.addSwitch("s1", cls=OVSSwitch, protocols="OpenFlow13")
    net.addLink(h1, s1)
    net.addLink("h2", "s1", port2=9, bw=3, addr1="00:00:00:00:00:aa")
    h1.setIP("10.0.0.5", prefixLen=16)
    assert (h1.IP(), h2.IP(), s1.dpid) == ("10.0.0.5", "10.0.0.77", "0000000000000001")
    first, second = net.fabric.hosts
    assert (first.ip, first.port, first.rate_mbps, first.delay_us) == ("10.0.0.5", 1, 7.0, 50)
    assert (second.mac, second.port, second.rate_mbps) == ("00:00:00:00:00:aa", 9, 3.0)
    with pytest.raises(AttributeError, match="once net.start"):
        _ = net.links[0].intf1
    net.delLink(net.linksBetween(h1, s1)[0])
    with pytest.raises(EmulationError, match="host h1: has no link"):
        _ = net.fabric


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "switch": (lambda: Knotless(switch=OVSBridge), "switch=OVSBridge: it would replace"),
    "host": (lambda: Knotless(host=CPULimitedHost), "host=CPULimitedHost: it would replace"),
    "link": (lambda: Knotless(link=partial(TCLink, loss=200)), "link: loss must be 0 to 100"),
    "xterms": (lambda: Knotless(xterms=True), "knotless attach HOST"),
    "option": (lambda: Knotless(engin="updown"), "no option 'engin'; did you mean 'engine'?"),
    "controllers": (lambda: Knotless(controllers=2), "there is no option 'controllers'"),
    "ryu": (lambda: Knotless().addController("c0", Ryu), "controller Ryu: it is not started"),
    "nat": (lambda: Knotless().addNAT(), "has no way out"),
    "node": (lambda: Knotless().addLink("h1", "s1"), "there is no such host or switch"),
    "cmd": (lambda: Knotless().addHost("h1").cmd("ls"), "h1 runs no programs before net.start()"),
    "popen": (lambda: Knotless().addHost("h1").popen("ls"), "h1 runs no programs before"),
    "cut": (lambda: Knotless().cut("s1", "s2"), "the fabric does not run: net.start() starts it"),
    "deadlock": (lambda: Knotless().deadlock(), "the fabric does not run"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_work_is_refused_in_one_line(what: str) -> None:
    attempt, message = REFUSED[what]
    with pytest.raises(KnotlessError) as refused:
        attempt()
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_name_is_used_once() -> None:
    net = Knotless()
    net.addHost("h1")
    with pytest.raises(EmulationError, match="'h1' names two nodes"):
        net.addSwitch("h1")


def test_a_plan_that_can_deadlock_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(EmulatedFabric, "start", lambda _fabric: pytest.fail("it starts"))
    ring = FabricTopo(load("ring,4"))
    net = Knotless(topo=ring, engine="minimal", select="low-port", link=partial(TCLink, bw=50))
    assert {link.rate_mbps for link in net.fabric.links} == {50.0}
    with pytest.raises(KnotlessError, match="CAN DEADLOCK"):
        net.start()
    assert len(net.links) == 8


def test_a_fabric_that_does_not_start_can_still_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fabric: EmulatedFabric) -> None:
        raise EmulationError("no root")

    monkeypatch.setattr(EmulatedFabric, "start", refuse)
    net = Knotless(topo=LinearTopo(2))
    for _ in range(2):
        with pytest.raises(EmulationError, match="no root"):
            net.start()
    net.addLink("s1", "s2")
    assert len(net.fabric.links) == 2


def test_switches_that_are_started_one_by_one_start_the_fabric(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[EmulatedFabric] = []
    monkeypatch.setattr(EmulatedFabric, "start", lambda fabric: begun.append(fabric))
    remote = partial(RemoteController, ip="192.0.2.1", port=6653)
    net = Knotless(topo=LinearTopo(2), controller=remote)
    net.build()
    for number, switch in enumerate(net.switches):
        assert len(begun) == 0, number
        switch.start(net.controllers)
    assert [one.controller for one in begun] == ["remote"]
    assert list(begun[0].remotes) == [("192.0.2.1", 6653)]
    net.stop()


def test_controllers_are_ours_remote_or_none() -> None:
    for ours in (Controller, OVSController):
        assert getattr(controller_of("c0", ours, {}), "address", "") is None
    assert controller_of("c0", None, {}) is None
    remote = partial(RemoteController, ip="192.0.2.1", port=6633)
    assert getattr(controller_of("c0", remote, {}), "address", None) == ("192.0.2.1", 6633)
    short = controller_of("c0", RemoteController, {"ip": "192.0.2.1:6634"})
    assert getattr(short, "address", None) == ("192.0.2.1", 6634)
    with pytest.raises(EmulationError, match="write its address as"):
        controller_of("c0", RemoteController, {"ip": "nowhere"})
    net = Knotless(topo=LinearTopo(2), controller=[remote, Controller])
    assert [one.name for one in net.controllers] == ["c0", "c1"]
    with pytest.raises(EmulationError, match="either all are ours, or all are RemoteController"):
        net.start()


def test_host_classes_of_mininet_are_taken() -> None:
    assert Knotless(host=Host).addHost("h1", cls=Host).name == "h1"


@pytest.mark.parametrize(
    ("line", "lines", "message"),
    [
        ("net.addLink('h1', 's1', loss=101)", 1, "line 5: link h1-s1: loss must be 0 to 100 perc"),
        ("net.deadlock()", 1, "line 5: the fabric does not run: net.start() starts it"),
        ("1 / 0", 3, "ZeroDivisionError"),
    ],
)
def test_a_mistake_ends_a_script_with_one_line(
    tmp_path: Path, line: str, lines: int, message: str
) -> None:
    script = tmp_path / "mine.py"
    text = "from knotless.mininet import Knotless\nnet = Knotless()\nnet.addHost('h1')\n"
    script.write_text(f"{text}net.addSwitch('s1')\n{line}\n")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert (len(our_lines(done.stderr)) == 1) == (lines == 1)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (
            lambda: Knotless(flow_control="lossless"),
            "'lossless' is not one of 'auto', 'none'",
        ),
        (lambda: Knotless(engine="dorr"), "there is no routing engine 'dorr'; did you mean 'dor'?"),
        (lambda: Knotless(vcs=99), "vcs: 99 is not at most 8"),
        (lambda: Knotless(name="my fabric"), "--name 'my fabric': a name is 1 to 24 of a-z"),
        (lambda: Knotless(topo=LinearTopo), r"topo=LinearTopo: .*, not a topology: LinearTopo\(\)"),
    ],
)
def test_faulty_settings_are_reported_at_construction(
    make: Callable[[], object], complaint: str
) -> None:
    with pytest.raises(KnotlessError, match=complaint) as raised:
        make()
    assert "\n" not in str(raised.value)


def test_a_node_that_is_not_there_is_named() -> None:
    net = Knotless(topo=LinearTopo(k=3))
    assert net.get("h1", "s2") == [net["h1"], net["s2"]]
    with pytest.raises(EmulationError, match="there is no node 'h7'; nodes are c0, h1, h2, h3, s1"):
        net.get("h7")
