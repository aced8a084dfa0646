"""Unmodified programs measure what the emulator does, at any stretch.

The fabric is the same in real time at both slow-downs: its links are faster by the slow-down.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from knotless.emulation import namespaces
from knotless.emulation.host import TCP_RTO_MS
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.priority import Part, Priority, prioritise
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.traffic import theory
from knotless_experiments.messages.programs import openmpi
from knotless_experiments.workloads import iperf
from knotless_experiments.workloads.messages.pair import Pair
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.realtime

T = TypeVar("T")

SLOW_DOWNS = (1.0, 50.0)
RATE_MBPS, DELAY_US, LONG_DELAY_US = 10.0, 500.0, 10_000.0
"""At slow-down 1. Round trips are measured with long delays, so that wake-up times matter less."""
CHANNELS = 4
"""From h1 to h3 on a ring of four: h1, s1, s2, s3."""
ATTEMPTS = 5
"""Until a run is valid."""
CLOSE = 0.02
ROUNDED_US = 1.0
"""ping prints microseconds."""
HOST_WAIT_US = 100_000
"""Longer than the default: on a virtual machine, time that its host takes away counts as computing,
and these tests are so short that one such moment is more than 1 % of them."""
THREADED_IPERF = (3, 16)
"""From this version on, iperf3 sees that it has sent an amount of bytes only at a full second."""
BYTES, COUNT = 64, 20
MPI_HEADER_BYTES = 64
"""About: IP, TCP with time stamps, and Open MPI's own."""
MPI_PROGRAM = """
import json, sys
from mpi4py import MPI

world, data = MPI.COMM_WORLD, bytearray(int(sys.argv[1]))
times = []
for _ in range(int(sys.argv[2])):
    began = MPI.Wtime()
    if world.rank == 0:
        world.Send(data, 1)
        world.Recv(data, 1)
    else:
        world.Recv(data, 0)
        world.Send(data, 0)
    times.append((MPI.Wtime() - began) * 1e6 / 2)
if world.rank == 0:
    print(json.dumps(min(times)))
"""


@pytest.fixture(scope="module", params=SLOW_DOWNS)
def ring(request: pytest.FixtureRequest) -> Iterator[EmulatedFabric]:
    slow_down = float(request.param)
    spec = f"ring,4,rate={RATE_MBPS * slow_down:g},delay={DELAY_US / slow_down:g}"
    fabric = EmulatedFabric(
        load(spec),
        PlanRequest.from_options(engine="updown"),
        name=f"test-{os.getpid()}-programs",
        openflow_port=0,
        rest_port=0,
        static_arp=True,
        slow_down=slow_down,
        virtual_clock=True,
        host_wait_us=HOST_WAIT_US,
    )
    with fabric:
        yield fabric


def address(fabric: Fabric, name: str) -> str:
    return fabric.hosts[fabric.host_index[name]].ip


def run(fabric: EmulatedFabric, host: str, *argv: str) -> str:
    """Run a program on a host, with the priority that measuring programs have."""
    program = fabric.host(host).popen(list(argv), stdout=subprocess.PIPE, text=True)
    prioritise(Part.PROGRAM, Priority.REALTIME, program.pid)
    text, _ = program.communicate(timeout=HANG_S)
    assert program.returncode == 0, text
    return str(text)


def length_of_test(slow_down: float) -> tuple[str, str]:
    """Return options of iperf3 for a short test that ends when the last byte is sent."""
    printed = subprocess.run(["iperf3", "--version"], capture_output=True, text=True, check=True)
    version = re.match(r"iperf (\d+)\.(\d+)", printed.stdout)
    assert version is not None, printed.stdout
    if (int(version[1]), int(version[2])) < THREADED_IPERF:
        # A wake-up that is late by 0.1 s of real time must not be more than 1 % of the test.
        return "-n", "4M" if slow_down == 1 else "12M"
    return "-t", f"{max(1, 6 / slow_down):.0f}"


def with_delay(fabric: EmulatedFabric, delay_us: float) -> None:
    """Give all links a delay, which is shorter at a larger slow-down."""
    names = {one["link"] for one in fabric.daemon.counters()["channels"]}
    delay_us /= fabric.slow_down
    fabric.daemon.reset(links=[{"name": name, "delay_us": delay_us} for name in sorted(names)])


def one_way_us(fabric: EmulatedFabric, packet_bytes: int) -> float:
    """Return how long a packet takes from h1 to h3 with long delays."""
    bits = 8 * theory.packet_wire_bytes(packet_bytes, tagged=False)
    return CHANNELS * (LONG_DELAY_US + bits / RATE_MBPS) / fabric.slow_down


def assert_shortest(measured_us: float, expected_us: float) -> None:
    """Programs that wake up late add to their times, so only the shortest one is the fabric's."""
    assert expected_us - ROUNDED_US <= measured_us <= expected_us * (1 + CLOSE)


def measured(fabric: EmulatedFabric, delay_us: float, measure: Callable[[], T]) -> T:
    """Return what a valid run measures: on a busy machine, the fabric calls some runs invalid."""
    problems = []
    for _ in range(ATTEMPTS):
        with_delay(fabric, delay_us)
        result = measure()
        status = fabric.daemon.status()
        if status["valid"]:
            assert status["stretch"] >= fabric.slow_down * 0.99
            return result
        problems.append(status["problems"])
    pytest.fail(f"no valid run: {problems}")


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_iperf3_reports_the_rate_of_the_line(
    ring: EmulatedFabric, protocol: theory.Protocol
) -> None:
    words = iperf.client_args(address(ring.fabric, "h3"), protocol, 0)
    position = words.index("-t")
    words[position : position + 2] = length_of_test(ring.slow_down)

    def measure() -> str:
        server = iperf.start_server(ring.host("h3"))
        prioritise(Part.PROGRAM, Priority.REALTIME, server.process.pid)
        try:
            return run(ring, "h1", *words)
        finally:
            server.close()

    summary = iperf.parse_summary(measured(ring, DELAY_US, measure))
    assert summary is not None
    line_mbps = RATE_MBPS * ring.slow_down / theory.load_per_payload(protocol, tagged=True)
    assert summary.goodput_mbps == pytest.approx(line_mbps, rel=CLOSE)


def test_ping_reports_round_trips(ring: EmulatedFabric) -> None:
    ping = ("ping", "-c", "20", "-i", "0.005", "-q", address(ring.fabric, "h3"))
    text = measured(ring, LONG_DELAY_US, lambda: run(ring, "h1", *ping))
    shortest_us = 1000 * float(text.splitlines()[-1].split("=")[1].split("/")[0])
    assert_shortest(shortest_us, 2 * one_way_us(ring, 84))


@pytest.mark.parametrize(("kind", "header_bytes"), [("message", 32), ("udp", 28)])
def test_pingpong_reports_one_way_times(ring: EmulatedFabric, kind: str, header_bytes: int) -> None:
    hosts = {host.name: host for host in ring.fabric.hosts}
    pair = Pair(ring, hosts["h1"], hosts["h3"])
    times, _ = measured(ring, LONG_DELAY_US, lambda: pair.exchange(kind, BYTES, COUNT))
    assert_shortest(times["min_us"], one_way_us(ring, BYTES + header_bytes))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("sockperf") is None, reason="needs sockperf")
def test_sockperf_reports_one_way_times(ring: EmulatedFabric) -> None:
    words = ["-i", address(ring.fabric, "h3"), "-m", str(BYTES), "--no-rdtsc"]
    server = ring.host("h3").popen(
        ["stdbuf", "-oL", "sockperf", "server", *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        assert any("to block on socket" in line for line in server.stdout), "it ended"
        prioritise(Part.PROGRAM, Priority.REALTIME, server.pid)
        # A second is its shortest test, and too short for percentiles: it leaves out both ends.
        seconds = "10" if ring.slow_down == 1 else "1"
        ask = ("sockperf", "ping-pong", *words, "-t", seconds)
        text = measured(ring, LONG_DELAY_US, lambda: run(ring, "h1", *ask))
    finally:
        server.kill()
        server.communicate()
    totals = re.search(r"RunTime=([0-9.]+) sec.* ReceivedMessages=([0-9]+)", text)
    assert totals is not None, text
    mean_us = float(totals[1]) * 1e6 / int(totals[2]) / 2
    assert mean_us == pytest.approx(one_way_us(ring, BYTES + 28), rel=CLOSE)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason=f"needs {openmpi.PACKAGES}")
def test_open_mpi_reports_one_way_times(ring: EmulatedFabric, tmp_path: Path) -> None:
    hosts = [ring.fabric.hosts[ring.fabric.host_index[name]] for name in ("h1", "h3")]
    agent, host_file = tmp_path / "agent", tmp_path / "hosts"
    agent.write_text(openmpi.agent_script(ring.names, hosts))
    agent.chmod(0o700)
    host_file.write_text("".join(f"{host.ip} slots=1\n" for host in hosts))
    words = [sys.executable, "-c", MPI_PROGRAM, str(BYTES), str(COUNT)]
    command = openmpi.mpirun_command(agent, host_file, 2, words)
    first = ["unshare", "--uts", "--", "sh", "-c", 'hostname h1 && exec "$@"', "sh", *command]

    def measure() -> float:
        process = subprocess.Popen(
            namespaces.enter(ring.host("h1").namespace, first),
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ring.program_environment()},
        )
        prioritise(Part.PROGRAM, Priority.REALTIME, process.pid)
        text, _ = process.communicate(timeout=HANG_S)
        assert process.returncode == 0, text
        return float(json.loads(text))

    expected_us = one_way_us(ring, BYTES + MPI_HEADER_BYTES)
    assert measured(ring, LONG_DELAY_US, measure) == pytest.approx(expected_us, rel=CLOSE)


def test_tcp_retransmits_as_late_in_virtual_time_as_at_stretch_1(ring: EmulatedFabric) -> None:
    shown = json.loads(ring.host("h1").cmd("ip -json -details route show 10.0.0.0/8"))
    (route,) = shown
    (metrics,) = route["metrics"]
    assert metrics["rto_min"] == round(TCP_RTO_MS * ring.slow_down)
