"""The controller with real switches: what it installs, keeps, repairs and reports."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from knotless.topologies import load
from tests.support import REPOSITORY
from tests.support.bare_fabric import BareFabric
from tests.support.waiting import HANG_S, until

COOKIE = "0x6b6e6f74"
CONFIG = "fabric: ring,4\nengine: updown\nconnect_timeout_s: 10\n"


@pytest.fixture(scope="module")
def ring() -> Iterator[BareFabric]:
    with BareFabric(load("ring,4")) as fabric:
        yield fabric


@pytest.fixture
def ready(ring: BareFabric) -> BareFabric:
    """Return the ring with its rules installed; a test may leave the controller stopped."""
    if ring.controller is None:
        ring.start_controller(CONFIG)
    ring.await_ready()
    return ring


def all_flows(fabric: BareFabric) -> dict[str, dict[str, float]]:
    return {s.name: fabric.flows(s.name) for s in fabric.fabric.switches}


def changed(fabric: BareFabric) -> set[str]:
    """Return the changes that the controller reports for each switch."""
    pattern = r"rules as wanted; (\d+ added, \d+ modified, \d+ deleted)"
    return set(re.findall(pattern, fabric.controller_log()))


@pytest.mark.smoke
def test_every_host_reaches_every_other(ready: BareFabric) -> None:
    for source in ready.fabric.hosts:
        for target in ready.fabric.hosts:
            text = ready.on(source.name, "ping", "-c", "1", "-W", "5", target.ip)
            assert " 0% packet loss" in text


@pytest.mark.smoke
def test_status_shows_installed_rules(ready: BareFabric) -> None:
    status = ready.get("/status")
    assert status["problems"] == []
    assert status["fabric"] == "ring,4"
    assert status["check"]["undelivered"] == 0
    assert status["check"]["acyclic"] is True
    for name, switch in status["switches"].items():
        assert switch["connected"]
        assert switch["installed"]
        of_the_plan = [flow for flow in ready.flows(name) if flow.startswith(f"cookie={COOKIE},")]
        assert switch["rules"] == len(of_the_plan) > 0
    assert ready.get("/plan")["engine"] == "updown"
    assert ready.get("/check") == status["check"]
    assert len(ready.get("/fabric")["links"]) == 4


RECEIVER = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5))
s.bind(("eth0", 0x88b5))
s.settimeout(30)
print("listening", flush=True)
seen = []
try:
    while True:
        seen.append(s.recv(2000)[14])
        if 99 in seen:
            s.settimeout(0.5)  # whatever still goes round has time to come by
except TimeoutError:
    print(*seen)
"""
SENDER = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for number in [*range(10), 99]:
    s.send(b"\\xff" * 6 + bytes.fromhex(sys.argv[1]) + b"\\x88\\xb5" + bytes([number]) + bytes(50))
"""


@pytest.mark.smoke
def test_a_broadcast_reaches_every_other_host_exactly_once(ready: BareFabric) -> None:
    source, *others = ready.fabric.hosts
    receivers = {
        host.name: subprocess.Popen(
            ready.command_on(host.name, sys.executable, "-c", RECEIVER),
            stdout=subprocess.PIPE,
            text=True,
        )
        for host in ready.fabric.hosts
    }
    try:
        for receiver in receivers.values():
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == "listening\n"
        mac = source.mac.replace(":", "")
        ready.on(source.name, sys.executable, "-c", SENDER, mac)
        for host in others:
            text, _ = receivers[host.name].communicate(timeout=HANG_S)
            assert text.split() == [*map(str, range(10)), "99"]
    finally:
        for receiver in receivers.values():
            receiver.kill()
            text, _ = receiver.communicate()
            assert receiver is not receivers[source.name] or text == ""


def test_rules_outlive_the_controller_and_are_left_alone_by_the_next(ready: BareFabric) -> None:
    before = all_flows(ready)
    ready.kill_controller()
    source, target = ready.fabric.hosts[0], ready.fabric.hosts[2]
    ready.on(source.name, "ping", "-c", "3", "-i", "0.1", "-W", "5", target.ip)
    ready.start_controller(CONFIG)
    ready.await_ready()
    assert changed(ready) == {"0 added, 0 modified, 0 deleted"}
    after = all_flows(ready)
    for name, flows in before.items():
        assert after[name].keys() == flows.keys()
        # A flow that was written again would be younger than before.
        assert all(after[name][flow] >= age for flow, age in flows.items())


@pytest.mark.smoke
def test_repair_loses_no_frame(ready: BareFabric) -> None:
    before = all_flows(ready)
    ready.kill_controller()
    source, target, other = (ready.fabric.hosts[i] for i in (0, 1, 2))
    # One stale and one missing rule, not on the path of the frames that are checked.
    stale = f"table=0,priority=60000,cookie={COOKIE},in_port=4242,actions=drop"
    ready.ofctl("add-flow", "s1", stale)
    lost = next(
        flow for flow in before["s3"] if "table=1" in flow and f"dl_dst={other.mac}" in flow
    )
    match = re.search(r"priority=\d+,(\S+)", lost)
    priority = re.search(r"priority=\d+", lost)
    assert match is not None
    assert priority is not None
    strict = f"table=1,{priority[0]},{match[1]}"
    ready.run(
        *("ovs-ofctl", "-O", "OpenFlow13", "--strict", "del-flows"),
        *(f"unix:{ready.directory}/s3.mgmt", strict),
    )
    assert len(ready.flows("s3")) == len(before["s3"]) - 1
    ping = subprocess.Popen(
        ready.command_on(source.name, "ping", "-i", "0.01", target.ip),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        ready.start_controller(CONFIG)
        ready.await_ready()
        ping.send_signal(signal.SIGINT)
        text, _ = ping.communicate(timeout=HANG_S)
    finally:
        ping.kill()
    answered = [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", text)]
    assert len(answered) > 10, text
    # The last one may still have been in flight.
    assert answered == list(range(1, answered[-1] + 1))
    assert {name: flows.keys() for name, flows in all_flows(ready).items()} == {
        name: flows.keys() for name, flows in before.items()
    }
    assert "0 added, 0 modified, 1 deleted" in changed(ready)
    assert "1 added, 0 modified, 0 deleted" in changed(ready)


def test_a_rule_of_somebody_else_is_kept_and_reported(ready: BareFabric) -> None:
    ready.kill_controller()
    ready.ofctl("add-flow", "s2", "table=0,priority=60001,cookie=0xabc,in_port=77,actions=drop")
    try:
        ready.start_controller(CONFIG)
        (problem,) = ready.await_ready()["problems"]
        assert problem.startswith("s2 (dpid 2) holds 1 rules that are not Knotless's")
        assert any("cookie=0xabc" in flow for flow in ready.flows("s2"))
    finally:
        ready.ofctl("del-flows", "s2", "cookie=0xabc/-1")
        ready.kill_controller()


def test_a_missing_port_is_one_clear_line(ready: BareFabric) -> None:
    interface = next(
        name for name in ready.vsctl("list-ports", "s4").split() if name.startswith("l")
    )
    port = int(ready.vsctl("get", "interface", interface, "ofport"))
    ready.vsctl("del-port", "s4", interface)
    try:
        until("the lost port", lambda: ready.get("/status")["problems"] != [])
        status = ready.get("/status")
        assert status["switches"]["s4"]["missing_ports"] == [port]
        (problem,) = status["problems"]
        assert problem.startswith(f"s4 (dpid 4) has no port {port}, which the fabric declares to s")
    finally:
        ready.add_port("s4", interface, port)
    until("the port to be back", lambda: ready.get("/status")["problems"] == [])


def test_an_undeclared_switch_gets_nothing_and_is_reported(ready: BareFabric) -> None:
    ready.add_bridge("odd", 0x99)
    try:
        until("the stranger", lambda: ready.get("/status")["problems"] != [])
        (problem,) = ready.get("/status")["problems"]
        assert problem.startswith("a switch with dpid 153 is connected, but fabric ring,4 declares")
        assert ready.flows("odd") == {}
        assert ready.get("/status")["ready"]
    finally:
        ready.vsctl("del-br", "odd")
    until("the stranger to be gone", lambda: ready.get("/status")["problems"] == [])


def test_the_second_of_two_switches_with_one_dpid_is_turned_away(ready: BareFabric) -> None:
    ready.add_bridge("twin", 3)
    try:
        until("the twin", lambda: ready.get("/status")["problems"] != [])
        (problem,) = ready.get("/status")["problems"]
        assert problem == "two switches say they are s3 (dpid 3): only one is served"
        assert ready.flows("twin") == {}
        assert ready.get("/status")["ready"]
    finally:
        ready.vsctl("del-br", "twin")
        # It remembers the duplicate dpid for a while.
        ready.kill_controller()


def test_a_switch_that_comes_back_is_repaired(ready: BareFabric) -> None:
    before = ready.flows("s1")
    controller = ready.vsctl("get", "bridge", "s1", "controller").strip().strip("[]")
    # No process listens there. (Without a controller setting, OVS would empty its tables.)
    ready.vsctl("set", "controller", controller, 'target="tcp:127.0.0.1:9"')
    until("s1 to leave", lambda: not ready.get("/status")["switches"]["s1"]["connected"])
    gone = "s1 (dpid 1) is not connected"
    until("the report", lambda: any(gone in line for line in ready.get("/status")["problems"]))
    assert not ready.get("/status")["ready"]
    assert ready.flows("s1").keys() == before.keys(), "it keeps its rules"
    ready.ofctl("del-flows", "s1")
    ready.vsctl("set", "controller", controller, 'target="tcp:127.0.0.1:6653"')
    ready.await_ready()
    assert ready.flows("s1").keys() == before.keys()


INTRUDER = """
import random, socket, struct
rng = random.Random(1)
hello = struct.pack("!BBHI", 4, 0, 8, 1)
features = struct.pack("!BBHI", 4, 6, 32, 2) + struct.pack("!QIBB2xII", 3, 0, 254, 0, 0, 0)
ports = struct.pack("!BBHI", 4, 19, 16, 3) + struct.pack("!HH4x", 13, 0)
for number in range(60):
    noise = rng.randbytes(rng.randrange(1, 400))
    kind = rng.randrange(0, 30)
    framed = struct.pack("!BBHI", 4, kind, 8 + len(noise), 4) + noise
    opening = [b"", hello, hello + features, hello + features + ports][number % 4]
    with socket.create_connection(("127.0.0.1", 6653)) as s:
        s.sendall(opening + (framed if number % 3 else noise))
"""

DUPLICATE = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.support.fake_switch import FakeSwitch
switch = FakeSwitch(6653, dpid=3, ports=3)
try:
    while True:
        switch.answer()
except (EOFError, ConnectionResetError):
    pass
"""


def test_intruders_on_the_openflow_port_have_no_effect(ready: BareFabric) -> None:
    before = all_flows(ready)
    ready.run(sys.executable, "-c", INTRUDER)
    ready.run(sys.executable, "-c", DUPLICATE, str(REPOSITORY))
    until("the intruders to be gone", lambda: bool(ready.await_ready()["ready"]))
    assert {n: f.keys() for n, f in all_flows(ready).items()} == {
        n: f.keys() for n, f in before.items()
    }
    # Another switch had claimed to be s3 while s3 was connected; that is remembered for a while.
    until("the report", lambda: "two switches say they are s3" in ready.controller_log())
    ready.kill_controller()


def test_refusals_of_a_switch_are_reported(ready: BareFabric) -> None:
    ready.kill_controller()
    ready.ofctl("del-flows", "s2")
    ready.vsctl(
        *("--id=@full", "create", "flow_table", "flow_limit=1", "overflow_policy=refuse", "--"),
        *("set", "bridge", "s2", "flow_tables:1=@full"),
    )
    try:
        ready.start_controller(CONFIG)
        until("the refusal", lambda: "refused" in str(ready.get("/status")))
        status = ready.get("/status")
        assert not status["ready"]
        assert not status["switches"]["s2"]["installed"]
        refusal = "s2 (dpid 2) refused to add the rule in table 1,"
        assert any(problem.startswith(refusal) for problem in status["problems"])
        assert "OFPFMFC_TABLE_FULL" in status["problems"][0]
    finally:
        ready.vsctl("clear", "bridge", "s2", "flow_tables")
        ready.kill_controller()


def test_a_cyclic_plan_is_installed_where_that_is_allowed(ring: BareFabric) -> None:
    ring.kill_controller()
    ring.start_controller(
        "fabric: ring,4\nengine: minimal\nselect: low-port\nallow_deadlock: true\n"
    )
    try:
        status = ring.await_ready()
        assert status["check"]["acyclic"] is False
        assert status["check"]["flow_control"] == "pause"
        cycle = " -> ".join(status["check"]["cycle"])
        assert f"CAN DEADLOCK under PAUSE: {cycle} -> " in ring.controller_log()
        assert "allow_deadlock is set" in ring.controller_log()
        source, target = ring.fabric.hosts[0], ring.fabric.hosts[2]
        ring.on(source.name, "ping", "-c", "1", "-W", "5", target.ip)
    finally:
        ring.kill_controller()


def test_sigterm_ends_it_at_once_and_leaves_the_rules(ready: BareFabric) -> None:
    before = all_flows(ready)
    assert ready.controller is not None
    ready.controller.terminate()
    assert ready.controller.wait(timeout=HANG_S) == 0
    ready.kill_controller()
    assert {n: f.keys() for n, f in all_flows(ready).items()} == {
        n: f.keys() for n, f in before.items()
    }
