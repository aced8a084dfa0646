"""Traffic patterns on a running fabric: started, stopped and found by any process.

One program sends for all hosts (:mod:`knotless.emulation.traffic_program`). It carries the mark of
the fabric and ends with it.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from knotless.base.errors import EmulationError
from knotless.base.files import write_whole
from knotless.base.package import WORKING_DIRECTORY, python_module
from knotless.emulation import processes, state
from knotless.emulation.names import NETNS_DIRECTORY, Names
from knotless.emulation.patience import LONGEST_STEP_S, Patience
from knotless.emulation.processes import Process
from knotless.emulation.runtime import machine_lock
from knotless.emulation.traffic_program import DATAGRAM_BYTES
from knotless.emulation.undo import taking_back
from knotless.emulation.virtual_clock import program_environment
from knotless.simulation.tracefile import Message, read_messages
from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import pattern_named
from knotless.traffic.theory import wire_bytes

START_LIMIT_S = 20.0
LIMITS_MBPS = (0.001, 1e5)
"""Limits of the rate of each host."""
MAX_SEED = 2**32 - 1
PACKET_BYTES = 1500
"""Bytes of a message in a full frame, as in the simulator."""

Pairs = Sequence[tuple[int, int]]
BySource = dict[int, list[tuple[int, float, int | None]]]
"""By source: the destination of each message, when it begins (s), and its datagrams (None: no
end)."""


@dataclass(frozen=True)
class RunningTraffic:
    """Traffic that runs. ``rate_mbps`` is of each host that sends; None: as fast as it can."""

    pattern: str
    rate_mbps: float | None
    seed: int
    flows: int
    started_at: float
    process: Process

    def as_json(self) -> dict[str, Any]:
        """Return what users are shown."""
        fields = asdict(self)
        return {**fields, "process": self.process.pid}


def start(
    names: Names, pattern: str, rate_mbps: float | None = None, seed: int = 1
) -> RunningTraffic:
    """Start a pattern such as ``shift:2`` on a running fabric.

    Every host sends full frames over UDP, to its destinations in turn. ``rate_mbps`` is on the
    wire, in virtual time.

    Raises
    ------
    PatternError
        There is no such pattern, it does not fit the fabric, or it has phases.
    EmulationError
        The fabric does not run or has plain links, other traffic runs, or a value is out of range.

    """
    least, most = LIMITS_MBPS
    if rate_mbps is not None and not least <= rate_mbps <= most:
        raise EmulationError(f"the rate must be from {least:g} to {most:g} Mbit/s")
    if not 0 <= seed <= MAX_SEED:
        raise EmulationError(f"the seed must be from 0 to {MAX_SEED}")
    fabric = state.require_emulated(names)
    chosen = pattern_named(pattern)
    return start_flows(names, fabric, chosen.name, chosen.flows(fabric, seed), rate_mbps, seed)


def start_trace(names: Names, path: str) -> RunningTraffic:
    """Send the messages of a trace, each from its time on, in full frames over UDP.

    The messages of a host that have begun take turns, frame by frame. Raises SimulationError if
    the trace makes no sense, and EmulationError as :func:`start` does.
    """
    fabric = state.require_emulated(names)
    return start_messages(names, fabric, Path(path).name, read_messages(path, fabric))


def start_messages(
    names: Names, fabric: Fabric, title: str, messages: Sequence[Message]
) -> RunningTraffic:
    """Send these messages, as :func:`start_trace` does; raises EmulationError."""
    by_source: BySource = {}
    for message in messages:
        datagrams = -(-message.size_bytes // PACKET_BYTES)
        by_source.setdefault(message.source, []).append(
            (message.destination, message.at_us / 1e6, datagrams)
        )
    return _start(names, fabric, by_source, title, len(messages))


def start_flows(
    names: Names,
    fabric: Fabric,
    title: str,
    flows: Pairs,
    rate_mbps: float | None = None,
    seed: int = 1,
) -> RunningTraffic:
    """Start these flows (source, destination; indices of hosts); raises EmulationError."""
    by_source: BySource = {}
    for source, destination in flows:
        by_source.setdefault(source, []).append((destination, 0.0, None))
    return _start(names, fabric, by_source, title, len(flows), rate_mbps, seed)


def _start(
    names: Names,
    fabric: Fabric,
    by_source: BySource,
    title: str,
    flows: int,
    rate_mbps: float | None = None,
    seed: int = 1,
) -> RunningTraffic:
    with machine_lock():
        state.require_running(names)
        if (current := running(names)) is not None:
            raise EmulationError(
                f"traffic {current.pattern} runs already: 'knotless traffic stop' ends it"
            )
        child = subprocess.Popen(
            python_module("knotless.emulation.traffic_program"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=WORKING_DIRECTORY,
            env={
                **os.environ,
                **program_environment(names, virtual_clock=True, several_hosts=True),
            },
            start_new_session=True,
        )
        process = processes.identify(child.pid)
        if process is None or not _ready(child, _wanted(names, fabric, by_source, rate_mbps)):
            child.kill()
            child.wait()
            raise EmulationError("the program that sends does not start")
        traffic = RunningTraffic(title, rate_mbps, seed, flows, time.time(), process)
        with taking_back() as steps:
            steps.append(lambda: processes.end([process]))
            write_whole(names.traffic_file, json.dumps(asdict(traffic)), EmulationError)
    return traffic


def stop(names: Names) -> RunningTraffic | None:
    """Stop the traffic and return what ran; None if there was none. Raises EmulationError."""
    with machine_lock():
        state.require_running(names)
        traffic = running(names)
        if traffic is not None:
            processes.end([traffic.process])
        names.traffic_file.unlink(missing_ok=True)
    return traffic


def running(names: Names) -> RunningTraffic | None:
    """Return the traffic that runs on a fabric; None if there is none."""
    try:
        fields = json.loads(names.traffic_file.read_text(encoding="utf-8"))
        traffic = RunningTraffic(**{**fields, "process": Process(**fields["process"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return traffic if processes.alive(traffic.process) else None


def _wanted(
    names: Names,
    fabric: Fabric,
    by_source: BySource,
    rate_mbps: float | None,
) -> Mapping[str, Any]:
    """Return the input of the program that sends."""
    spaces = [str(NETNS_DIRECTORY / names.host_namespace(host.name)) for host in fabric.hosts]
    bits = 8 * wire_bytes("udp", DATAGRAM_BYTES, tagged=False)
    interval_s = 0.0 if rate_mbps is None else bits / (1e6 * rate_mbps)
    receivers = {to for messages in by_source.values() for to, _, _ in messages}
    return {
        "receivers": [spaces[index] for index in sorted(receivers)],
        "senders": [
            {
                "namespace": spaces[source],
                "interval_s": interval_s,
                "messages": [(fabric.hosts[to].ip, *when) for to, *when in messages],
            }
            for source, messages in by_source.items()
        ],
    }


def _ready(child: subprocess.Popen[bytes], wanted: Mapping[str, Any]) -> bool:
    """Give the program its input and wait until its sockets are open."""
    if child.stdin is None or child.stdout is None:  # pragma: no cover - they are pipes
        raise ValueError("no pipes")
    with child.stdin, child.stdout:
        try:
            child.stdin.write(json.dumps(wanted).encode())
            child.stdin.close()
        except BrokenPipeError:
            return False
        patience = Patience.with_processes(START_LIMIT_S, child.pid)
        while not select.select([child.stdout], [], [], LONGEST_STEP_S)[0]:
            if patience.is_over():
                return False
        return child.stdout.readline() == b"ready\n"
