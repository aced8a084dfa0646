"""A pause storm: what one host that never resumes costs the flows of others.

    sudo .venv/bin/python -m bench.pause_storms
    sudo .venv/bin/python -m bench.pause_storms --host-pause 1 --watchdog 200000

On ``torus,4,4`` (``updown``, PAUSE on all links), four UDP flows share links with 900 pings to h1.
After some seconds h1 sends eight PAUSE frames of the longest time, one every 1.5 s. The script
prints what each flow gets before and during the 12 s of the storm, when the status of the emulator
first names h1, and what was counted. With ``--half``, h1 pauses its link for half of each 100 ms
instead, as a slow receiver may.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from bench.support.entry import run_benchmark
from knotless.base.flow_control import FlowControl
from knotless.base.pause_storms import too_long
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.runtime import require_root
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load

HOST = "h1"
PINGING = ("h6", "h11", "h16")
FLOW_MBPS = 4.0
STORM_S = 12.0
SETTLE_S = 4.0
LONGEST = 0xFFFF
PAUSE = """
import socket, sys, time
quanta, count, every_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind((sys.argv[4], 0))
    head = bytes.fromhex("0180c2000001 020000000101 8808 0001")
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number * every_s - time.monotonic()))
        out.send(head + quanta.to_bytes(2, "big") + bytes(42))
"""
SEND = """
import socket, sys, time
to, mbps, end_s = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
payload = bytes(1400)
gap_s = (len(payload) + 28 + 38) * 8 / mbps / 1e6
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    due = time.monotonic()
    end = due + end_s
    while due < end:
        time.sleep(max(0.0, due - time.monotonic()))
        out.sendto(payload, (to, 5001))
        # A sender that was held back does not catch up.
        due = max(due + gap_s, time.monotonic() - gap_s)
"""


def flows(plan: Plan) -> list[tuple[str, str]]:
    """Return four flows, of different hosts, that share channels with the pings."""

    def channels(source: str, destination: str) -> set[tuple[str, int]]:
        return {(hop.switch, hop.out_port) for hop in plan.path(source, destination)}

    pinged = set().union(*(channels(source, HOST) for source in PINGING))
    free = [host.name for host in plan.fabric.hosts if host.name not in (HOST, *PINGING)]
    chosen: list[tuple[str, str]] = []
    used: set[tuple[str, int]] = set()
    for source in free:
        for destination in reversed(free):
            busy = {name for flow in chosen for name in flow}
            path = channels(source, destination)
            if source == destination or {source, destination} & busy:
                continue
            # Each flow has its share: no channel carries two of them.
            if path & pinged and not path & used:
                chosen.append((source, destination))
                used |= path
    return chosen[:4]


def measure(
    plan: Plan, host_pause: float | None, watchdog: Mapping[str, Any] | None, *, half: bool
) -> dict[str, Any]:
    """Run the storm and return what was measured."""
    lab = EmulatedFabric.from_plan(
        plan,
        name=f"storm-{secrets.token_hex(2)}",
        openflow_port=0,
        rest_port=0,
        static_arp=True,
        watchdog=watchdog,
        pause_share=host_pause,
    )
    unrelated = flows(plan)
    destinations = {destination for _, destination in unrelated}
    with lab:

        def start(host: str, program: str, *words: object) -> None:
            command = [sys.executable, "-c", program, *map(str, words)]
            started.append(lab.host(host).popen(command))

        def received() -> dict[str, int]:
            channels = lab.daemon.counters()["channels"]
            return {
                channel["to"]: channel["rx_bytes"]
                for channel in channels
                if channel["to"] in destinations
            }

        started: list[Any] = []
        ip = {host.name: host.ip for host in plan.fabric.hosts}
        for source, destination in unrelated:
            start(source, SEND, ip[destination], FLOW_MBPS, 3 * SETTLE_S + STORM_S)
        for source in PINGING:
            words = ["ping", "-q", "-i", str(12 * len(PINGING) / 900), "-s", "1400", ip[HOST]]
            started.append(lab.host(source).popen(words))
        time.sleep(SETTLE_S)
        before, began = received(), time.monotonic()
        time.sleep(SETTLE_S)
        usual, usual_s = received(), time.monotonic() - began
        storm = (977, 120, 0.1) if half else (LONGEST, 8, 1.5)
        storm_began = time.monotonic()
        start(HOST, PAUSE, *storm, f"{HOST}-eth0")
        named_s = None
        while time.monotonic() < storm_began + STORM_S:
            hosts = [host["host"] for host in too_long(lab.daemon.status())]
            if HOST in hosts and named_s is None:
                named_s = time.monotonic() - storm_began
            time.sleep(0.05)
        during, during_s = received(), time.monotonic() - storm_began
        status = lab.daemon.status()
        to_host = next(c for c in lab.daemon.counters()["channels"] if c["to"] == HOST)
        for process in started:
            process.terminate()
            process.wait()
    rate = {
        to: (
            (usual[to] - before[to]) * 8e-6 / usual_s,
            (during[to] - usual[to]) * 8e-6 / during_s,
        )
        for to in usual
    }
    return {
        "flows_mbps": {
            f"{a} to {b}": {"before": round(rate[b][0], 3), "storm": round(rate[b][1], 3)}
            for a, b in unrelated
        },
        "share_kept": round(min(storm / usual for usual, storm in rate.values()), 4),
        "named_after_s": None if named_s is None else round(named_s, 2),
        "host_pauses": to_host["host_pauses"],
        "paused_s": round(to_host["priorities"][0]["paused_us"] / 1e6, 2),
        "storms": status["storms"],
        "valid": status["valid"],
        "stretch": status["stretch"],
    }


@click.command(epilog="Example: sudo .venv/bin/python -m bench.pause_storms --host-pause 1")
@click.option(
    "--host-pause", type=click.FloatRange(0, 1), help="Share of the time; 1: no limit; default 0.6."
)
@click.option("--watchdog", type=click.FloatRange(min=1), metavar="US", help="Detection time.")
@click.option("--action", type=click.Choice(["drop", "forward"]), default="drop", show_default=True)
@click.option("--half", is_flag=True, help="Pause for half of each 100 ms, as a slow receiver may.")
def main(host_pause: float | None, watchdog: float | None, action: str, half: bool) -> None:
    """Measure what one host that never resumes costs the flows of others; print JSON."""
    require_root()
    plan = make_plan(
        load("torus,4,4"), PlanRequest(engine="updown", flow_control=FlowControl.PAUSE)
    )
    settings = {"watchdog_us": watchdog, "watchdog_action": action} if watchdog else None
    click.echo(json.dumps(measure(plan, host_pause, settings, half=half), indent=1))


if __name__ == "__main__":
    run_benchmark(main)
