"""All-to-all traffic on a running fabric, and how much of it the emulator carries."""

from __future__ import annotations

import json
import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from bench.support.all_to_all import RECORD
from knotless.controller.updates import worker as background
from knotless.emulation.network import EmulatedFabric
from knotless.routing.plan import Plan

OFFERED_HOPS_PER_S = 200_000.0
"""Channel-hops per second that hosts try to send to find out how many are carried."""
WARM_S, WINDOW_S = 5.0, 10.0
PLANNER = background.__name__
"""On the command line of the process that plans ahead."""


@contextmanager
def traffic(lab: EmulatedFabric, frames_per_s: float, log: Path) -> Iterator[None]:
    """Have each host send this much to all others in turn, and log what arrives."""
    hosts = [
        {"namespace": f"/run/netns/{lab.names.host_namespace(host.name)}", "ip": host.ip}
        for host in lab.fabric.hosts
    ]
    task = json.dumps({"hosts": hosts, "frames_per_s": frames_per_s, "log": str(log)}).encode()
    processes = []
    try:
        for what in ("receive", "send"):
            command = [sys.executable, "-m", "bench.support.all_to_all", what]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            processes.append(process)
            assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
            process.stdin.write(task)
            process.stdin.close()
            if not process.stdout.readline():
                raise RuntimeError(f"python -m bench.support.all_to_all {what} did not start")
        yield
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
            time.sleep(0.5)  # what is under way arrives


def lab_of(plan: Plan) -> EmulatedFabric:
    """Return the fabric of a plan, to be started for a measurement, on free ports."""
    name = f"bench-{secrets.token_hex(2)}"
    return EmulatedFabric.from_plan(plan, name=name, openflow_port=0, rest_port=0, static_arp=True)


def channels_per_frame(plan: Plan) -> float:
    """Return the mean number of channels on the paths of all-to-all frames, of 400 pairs."""
    names = [host.name for host in plan.fabric.hosts]
    rng = random.Random(1)  # noqa: S311 - repeatable, not secret
    pairs = [(rng.choice(names), rng.choice(names)) for _ in range(400)]
    channels = [len(plan.path(a, b)) + 1 for a, b in pairs if a != b]
    return sum(channels) / len(channels)


def carried(plan: Plan) -> float:
    """Return the channel-hops per second of real time when hosts send all they can.

    The process that plans ahead is suspended: it is done after some minutes, and takes a third of
    what 100 switches can carry until then.
    """
    hosts, channels = len(plan.fabric.hosts), channels_per_frame(plan)
    with tempfile.TemporaryDirectory() as folder, lab_of(plan) as lab:
        log = Path(folder) / "log"
        with traffic(lab, OFFERED_HOPS_PER_S / channels / hosts, log):
            time.sleep(WARM_S)
            for process in psutil.Process().children(recursive=True):
                if PLANNER in process.cmdline():
                    process.suspend()
            begin = time.time()
            time.sleep(WINDOW_S)
            end = time.time()
        arrivals = np.fromfile(log, dtype=RECORD)["at"]
    return float(((arrivals > begin) & (arrivals < end)).sum() / (end - begin) * channels)
