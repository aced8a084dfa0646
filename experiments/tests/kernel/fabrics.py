"""Fabrics on one datapath of Open vSwitch, next to a datapath of somebody else.

Runs on the kernel of machine.py, as root, and prints one line of JSON.

    python -m experiments.tests.kernel.fabrics kernel
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from knotless.base.flow_control import FlowControl
from knotless.emulation import namespaces, processes, state
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.routing.request import PlanRequest
from knotless.simulation import simulate
from knotless.topologies import load
from knotless_experiments.framework.routed import Routed
from knotless_experiments.studies.agreement import measure
from knotless_experiments.studies.agreement.cases import Case

FOREIGN = "ovs-system"
"""A datapath in the first network namespace, with the name that the machine's own would have."""
WINDOW_S = 0.1
KNOT_S = 1.5
"""Window of a fabric that freezes: a deadlock is reported when it has lasted for 0.5 s."""
TAG = bytes.fromhex("81000005")
LOST_FRAMES = 20
HOST_WAIT_US = 100_000
"""The time other programs take from a kernel that is a process counts as that of its programs."""
DEADLINE_S = 60.0


def cases(datapath: str) -> dict[str, Case]:
    """Return the fabrics that are compared with the simulator; the last one freezes."""
    updown = PlanRequest(engine="updown")
    one_way = PlanRequest(engine="dor", vcs=1, select="low-port")
    by_name = {}
    for name, spec, request, pattern in (
        ("ring", "ring,4,rate=100,delay=50", updown, "shift:2"),
        ("torus", "torus,4,4,rate=100,delay=50", updown, "shift:1"),
        ("cyclic", "ring,4,rate=10,delay=500", one_way, "shift:2"),
    ):
        settings: tuple[tuple[str, Any], ...] = (
            ("datapath", datapath),
            ("host_wait_us", HOST_WAIT_US),
        )
        if request is one_way:
            settings += (("allow_deadlock", True),)
        by_name[name] = Case(
            name, Routed(spec, request, settings=settings), pattern, FlowControl.PAUSE
        )
    return by_name


def compared(case: Case) -> dict[str, Any]:
    """Run a fabric and its simulation; ``worst`` is the largest deviation of a flow from it."""
    freezes = dict(case.routed.settings).get("allow_deadlock")
    with case.routed.running() as lab:
        live = measure.emulated(lab, case, case.scenario, KNOT_S if freezes else WINDOW_S)
    row = measure.compared(case, live, simulate(case.scenario.lasting(live.window_us)))
    flows = zip(row["emulated_flows_frames"], row["simulated_flows_frames"], strict=True)
    return {
        "worst": max(abs(a / max(1, b) - 1) for a, b in flows),
        "knot": row["emulated_knot"],
        "same_knot": row["emulated_knot"] == row["simulated_knot"],
        "valid": bool(live.status["valid"]) and not live.problems,
        "problems": [*live.problems, *live.status["problems"]],
    }


def datapaths(namespace: str | None = None) -> dict[str, int]:
    """Return the kernel's datapaths in a network namespace, and how many ports each has."""
    show = ["ovs-dpctl", "show"]
    command = show if namespace is None else namespaces.enter(namespace, show)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    ports: dict[str, int] = {}
    name = ""
    for line in done.stdout.splitlines():
        if not line.startswith(" "):
            name = line.strip().rstrip(":").removeprefix("system@")
            ports[name] = 0
        ports[name] += line.strip().startswith("port ")
    return ports


def dropped(lab: EmulatedFabric) -> dict[str, Any]:
    """Send frames that no rule admits (tagged); return how the emulator counts them."""
    before = lost(lab)
    with (
        namespaces.inside(f"/run/netns/{lab.names.host_namespace('h1')}"),
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
    ):
        sender.bind(("h1-eth0", 0))
        a, b = (bytes.fromhex(host.mac.replace(":", "")) for host in lab.fabric.hosts[:2])
        for _ in range(LOST_FRAMES):
            sender.send((b + a + TAG + b"\x88\xb6").ljust(400, b"\0"))
    end = time.monotonic() + DEADLINE_S
    while lost(lab) < before + LOST_FRAMES and time.monotonic() < end:
        time.sleep(0.05)
    return {"lost": lost(lab) - before, "status": lab.daemon.status()}


def lost(lab: EmulatedFabric) -> int:
    return sum(one["drops"]["unforwarded"] for one in lab.daemon.counters()["channels"])


def two(datapath: str) -> dict[str, Any]:
    """Run two fabrics side by side, stop one, and send through the other."""
    settings: Mapping[str, Any] = {"datapath": datapath, "openflow_port": 0, "rest_port": 0}
    one = EmulatedFabric(load("ring,4"), PlanRequest(engine="updown"), name="one", **settings)
    other = EmulatedFabric(load("flat,2"), name="other", controller="none", **settings)
    with one:
        with other:
            during = [datapaths(lab.names.switches_namespace()) for lab in (one, other)]
        after = datapaths(one.names.switches_namespace())
        ping = one.host("h1").popen(["ping", "-c", "3", one.fabric.hosts[2].ip])
        results = {"during": during, "after": after, "ping": ping.wait(), "dropped": dropped(one)}
    return {**results, "left": left(one.names) + left(other.names)}


def left(names: Names) -> list[str]:
    """Return what a fabric has left on the machine."""
    remains = [f"namespace {space}" for space in state.existing_namespaces(names)]
    remains += [str(names.directory)] * names.directory.exists()
    return remains + [f"process {process.pid}" for process in processes.marked(names.name)]


def main() -> None:
    datapath = sys.argv[1]
    subprocess.run(["ovs-dpctl", "add-dp", FOREIGN], check=True)
    runs = {name: compared(case) for name, case in cases(datapath).items()}
    results = {"compared": runs, "two": two(datapath), "foreign": datapaths()}
    spaces = sorted(path.name for path in Path("/run/netns").iterdir())
    sys.stdout.write(json.dumps({**results, "namespaces": spaces}) + "\n")


if __name__ == "__main__":
    main()
