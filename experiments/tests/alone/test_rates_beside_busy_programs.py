"""Rates that users measure on a busy machine are those of the fabric: programs see virtual time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mininet.topolib import TreeTopo

from knotless.mininet import Knotless
from tests.support.waiting import HANG_S

LEAST_MBPS = 8.7
"""Of lines of 10 Mbit/s. In real time it is about half of this beside two busy programs."""
ATTEMPTS = 3
"""The machine may be so busy otherwise that programs wake up too late even in virtual time."""


@pytest.fixture
def net() -> Iterator[Any]:
    """Return the tutorial's fabric beside as many busy programs as there are processors."""
    with ExitStack() as ending:
        for _ in os.sched_getaffinity(0):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            ending.callback(busy.wait)
            ending.callback(busy.kill)
        name = f"test-{os.getpid()}-busy"
        net = Knotless(topo=TreeTopo(depth=2, fanout=2), autoSetMacs=True, name=name)
        ending.callback(net.stop)
        net.start()
        yield net


def test_iperf_of_mininet_and_of_exec(net: Any) -> None:
    first, last = net.get("h1", "h4")
    rates: list[float] = []
    while not rates or (max(rates) < LEAST_MBPS and len(rates) < ATTEMPTS):
        received, unit = net.iperf((first, last), seconds=2)[0].split()
        assert unit == "Mbits/sec"
        rates.append(float(received))
    assert max(rates) >= LEAST_MBPS, rates

    command = str(Path(sys.executable).with_name("knotless"))
    knotless = [command, "exec", "--name", net.running.names.name]
    rates.clear()
    while not rates or (max(rates) < LEAST_MBPS and len(rates) < ATTEMPTS):
        server = last.popen(["iperf3", "-s", "-1", "--forceflush"])
        assert any(b"listening" in line for line in server.stdout)
        client = [*knotless, "h1", "iperf3", "-c", "h4", "-t", "2", "-J"]
        done = subprocess.run(client, capture_output=True, check=True, timeout=HANG_S)
        assert done.stderr == b""
        server.communicate()
        rates.append(json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] / 1e6)
    assert max(rates) >= LEAST_MBPS, rates
