"""The link emulator alone: static rules, no controller, real frames and unmodified iperf3."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from knotless.base.flow_control import FlowControl
from knotless.emulation.daemon import BINARY, ChannelCounters, Counters
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.topologies import Fabric, load
from tests.support.fabric_fixtures import new_names
from tests.support.waiting import HANG_S, until

RING = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
Programs = list[subprocess.Popen[bytes]]


def running(names: Names, fabric: Fabric, **settings: Any) -> EmulatedFabric:
    return EmulatedFabric(fabric, name=names.name, controller="none", static_arp=True, **settings)


def add_rules(fabric: EmulatedFabric, switch: str, outputs: dict[str, int]) -> None:
    """Add rules that send frames for each host to a port, without tags."""
    macs = {host.name: host.mac for host in fabric.fabric.hosts}
    text = "".join(f"dl_dst={macs[host]},actions={port}\n" for host, port in outputs.items())
    subprocess.run(
        [
            *("ovs-ofctl", "-O", "OpenFlow13", "add-flows"),
            *(f"unix:{fabric.names.ovs_directory}/{switch}.mgmt", "-"),
        ],
        input=text,
        text=True,
        check=True,
    )


def add_ring_rules(fabric: EmulatedFabric, ways: dict[str, str]) -> None:
    """Add rules: frames go two hops clockwise (port 2) or anticlockwise (port 3).

    ``ways`` is the direction for each destination.
    """
    for place in range(4):
        outputs = {}
        for host in range(4):
            port = 2 if ways[f"h{host + 1}"] == "clockwise" else 3
            outputs[f"h{host + 1}"] = 1 if host == place else port
        add_rules(fabric, f"s{place + 1}", outputs)


CYCLIC = dict.fromkeys(("h1", "h2", "h3", "h4"), "clockwise")
# h1 -> h3 and h2 -> h4 meet on s2:2, h3 -> h1 and h4 -> h2 on s3:3; nothing closes a cycle.
ACYCLIC = {"h3": "clockwise", "h4": "clockwise", "h1": "anticlockwise", "h2": "anticlockwise"}


def flood(fabric: EmulatedFabric, sender: str, receiver: str) -> subprocess.Popen[bytes]:
    """Send UDP datagrams as fast as the socket accepts them, without a connection."""
    address = next(host.ip for host in fabric.fabric.hosts if host.name == receiver)
    code = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"s.connect(({address!r}, 9))\n"
        "while True:\n"
        "    try: s.send(bytes(1472))\n"
        "    except ConnectionRefusedError: pass\n"
    )
    process: subprocess.Popen[bytes] = fabric.host(sender).popen(
        ["python3", "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return process


def channel(counters: Counters, name: str) -> ChannelCounters:
    return next(channel for channel in counters["channels"] if channel["channel"] == name)


def end(flows: Programs) -> None:
    for flow in flows:
        flow.kill()
        flow.wait()


def rates_mbps(fabric: EmulatedFabric, names: list[str], seconds: float) -> list[float]:
    """Return bits per second, gaps included, on the channels during a period of daemon time."""
    first = fabric.daemon.counters()
    until(
        "time to pass",
        lambda: fabric.daemon.counters()["now_us"] - first["now_us"] > seconds * 1e6,
    )
    last = fabric.daemon.counters()
    time_us = last["now_us"] - first["now_us"]

    def bits(name: str) -> int:
        a, b = channel(first, name), channel(last, name)
        frames = b["tx_frames"] - a["tx_frames"]
        return 8 * (b["tx_bytes"] - a["tx_bytes"] + 20 * frames)

    return [bits(name) / time_us for name in names]


@pytest.fixture(scope="module")
def pair() -> Iterator[EmulatedFabric]:
    with running(new_names(), load("flat,2"), virtual_clock=True) as fabric:
        add_rules(fabric, "s1", {"h1": 1, "h2": 2})
        yield fabric


@pytest.fixture(scope="module")
def ring() -> Iterator[EmulatedFabric]:
    with running(new_names(), load("ring,4")) as fabric:
        yield fabric


@pytest.fixture
def flows() -> Iterator[Programs]:
    """Return a list of programs that are ended after the test."""
    started: Programs = []
    yield started
    end(started)


def test_iperf3_at_full_speed_fills_the_line_and_loses_nothing(pair: EmulatedFabric) -> None:
    server = pair.host("h2").popen(
        ["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until(
        "iperf3 to listen",
        lambda: "5201" in pair.host("h2").pexec("ss", "-ltnH")[0],
    )
    pair.daemon.reset()
    address = pair.fabric.hosts[1].ip
    words = ["iperf3", "-c", address, "-u", "-b", "0", "-l", "1472", "-t", "4", "-J"]
    out, error, status = pair.host("h1").pexec("timeout", "50", *words)
    assert status == 0, out + error
    server.wait(timeout=HANG_S)
    total = json.loads(out)["end"]["sum_received"]
    assert total["packets"] > 1000
    assert total["lost_packets"] == 0
    # 1,472 of 1,538 bytes on the wire at 10 Mbit/s.
    assert total["bits_per_second"] / 1e6 == pytest.approx(9.571, rel=0.02)
    counters = pair.daemon.counters()
    assert counters["lost_frames"] == 0
    assert counters["nfqueue"]["h1"]["accepted"] > 1000


def test_a_cyclic_ring_freezes_and_its_cycle_is_named(
    ring: EmulatedFabric, flows: Programs
) -> None:
    add_ring_rules(ring, CYCLIC)
    ring.daemon.reset(flow_control=FlowControl.PAUSE)
    flows += [flood(ring, f"h{i + 1}", f"h{(i + 2) % 4 + 1}") for i in range(4)]
    until("the deadlock", lambda: ring.daemon.deadlock() is not None)
    deadlock = ring.daemon.deadlock()
    assert deadlock is not None
    assert list(deadlock.cycle) == RING
    assert set(deadlock.members) == {*RING, "h1/0", "h2/0", "h3/0", "h4/0"}
    assert rates_mbps(ring, ["s1:1", "s2:1", "s3:1", "s4:1"], 0.5) == [0, 0, 0, 0]
    assert ring.daemon.counters()["lost_frames"] == 0

    # Without PAUSE the same flows continue, and lose frames.
    ring.daemon.reset(flow_control=FlowControl.NONE)
    until("losses", lambda: ring.daemon.counters()["lost_frames"] > 100)
    assert min(rates_mbps(ring, ["s1:1", "s2:1", "s3:1", "s4:1"], 1)) > 1
    assert ring.daemon.deadlock() is None


def test_an_acyclic_ring_shares_its_lines_and_loses_nothing(
    ring: EmulatedFabric, flows: Programs
) -> None:
    add_ring_rules(ring, ACYCLIC)
    ring.daemon.reset(flow_control=FlowControl.PAUSE)
    flows += [flood(ring, f"h{i + 1}", f"h{(i + 2) % 4 + 1}") for i in range(4)]
    until(
        "PAUSE at every host",
        lambda: all(
            channel(ring.daemon.counters(), f"h{i}")["priorities"][0]["pauses"] > 3
            for i in range(1, 5)
        ),
    )
    shared = rates_mbps(ring, ["s2:2", "s3:3"], 4)
    assert all(9.9 < rate < 10.01 for rate in shared), shared
    shares = rates_mbps(ring, ["s1:1", "s2:1", "s3:1", "s4:1"], 8)
    assert all(abs(share - 5) < 0.05 for share in shares), shares
    assert ring.daemon.counters()["lost_frames"] == 0
    assert ring.daemon.deadlock() is None


def test_bad_lines_do_not_end_the_daemon(pair: EmulatedFabric) -> None:
    before = pair.daemon.counters()["now_us"]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANG_S)
        connection.connect(str(pair.names.emulator_socket))
        reader = connection.makefile("rb")
        for line in (b"", b"nonsense", b'{"do":"fly"}', b"\xff\x00", b'{"do":"status","x":1}'):
            connection.sendall(line + b"\n")
            answer = json.loads(reader.readline())
            assert answer["ok"] is False
            assert "\n" not in answer["error"]
        # It answers and closes the connection before all of this has been sent.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(b"x" * (2 << 20))
        assert json.loads(reader.readline())["ok"] is False
        reader.close()
    # Its clock continues: it is the same daemon, and it answers.
    assert pair.daemon.counters()["now_us"] > before


def configuration(**changes: Any) -> dict[str, Any]:
    link = {
        "name": "h1",
        "a": {"host": "h1", "interface": "none-a"},
        "b": {"switch": "s1", "port": 1, "interface": "none-b"},
        "rate_mbps": 10,
        "delay_us": 500,
    }
    return {"namespace": "/proc/self/ns/net", "links": [link], **changes}


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "interface none-a of h1"),
        ({"namespace": "/run/netns/there-is-none"}, "/run/netns/there-is-none"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"tick_us": 0}, "tick_us 0"),
        ({"links": []}, "links"),
    ],
)
def test_wrong_start_options_give_one_line(
    changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    config = tmp_path / "emulator.json"
    config.write_text(json.dumps(configuration(**changes)))
    done = subprocess.run(
        [BINARY, "--config", config, "--socket", tmp_path / "socket"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert not (tmp_path / "socket").exists()


def test_a_second_daemon_leaves_the_first_ones_socket_alone(
    pair: EmulatedFabric, tmp_path: Path
) -> None:
    config = tmp_path / "emulator.json"
    config.write_text(json.dumps(configuration()))
    before = pair.daemon.counters()["now_us"]
    done = subprocess.run(
        [BINARY, "--config", config, "--socket", pair.names.emulator_socket],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 2
    assert "another daemon listens here" in done.stderr
    assert pair.daemon.counters()["now_us"] > before


@pytest.mark.smoke
def test_an_idle_daemon_ends_at_once_on_a_signal(tmp_path: Path) -> None:
    space = f"emu-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", space], check=True)
    try:
        pair = ["link", "add", "none-a", "mtu", "1600", "type", "veth", "peer", "name", "none-b"]
        subprocess.run(["ip", "-n", space, *pair], check=True)
        subprocess.run(["ip", "-n", space, "link", "set", "none-b", "mtu", "1600"], check=True)
        config = tmp_path / "emulator.json"
        config.write_text(json.dumps(configuration(namespace=f"/run/netns/{space}")))
        with subprocess.Popen(
            [
                *(BINARY, "--config", config, "--socket", tmp_path / "socket"),
                *("--pid-file", tmp_path / "pid", "--log", tmp_path / "log"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        ) as daemon:
            assert daemon.stdout is not None
            assert daemon.stdout.readline() == "ready\n"
            assert (tmp_path / "pid").read_text() == f"{daemon.pid}\n"
            assert (tmp_path / "socket").stat().st_mode & 0o777 == 0o600
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(timeout=HANG_S) == 0
        assert not (tmp_path / "socket").exists()
        assert not (tmp_path / "pid").exists()
        assert "ready" in (tmp_path / "log").read_text()
    finally:
        subprocess.run(["ip", "netns", "delete", space], check=True)


def test_an_answer_longer_than_a_sockets_buffer_arrives_under_load(
    pair: EmulatedFabric, flows: Programs
) -> None:
    flows.append(flood(pair, "h1", "h2"))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANG_S)
        connection.connect(str(pair.names.emulator_socket))
        # Far more answers than fit into the buffers of the socket while nobody reads.
        connection.sendall(b'{"do":"counters"}\n' * 500)
        with connection.makefile("rb") as reader:
            answers = [json.loads(reader.readline()) for _ in range(500)]
    assert all(answer["ok"] for answer in answers)
    assert answers[-1]["now_us"] >= answers[0]["now_us"]
