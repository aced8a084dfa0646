"""Pause storms of many hosts: the controller must not take a paused link for a failed one.

    sudo .venv/bin/python -m bench.false_alarms --minutes 60 --json

On ``torus,4,4`` (``updown``, PAUSE on all links, no limit on the pauses of hosts), all hosts send
to all others. One storm follows the other: a random host pauses its link for some seconds, by
PAUSE frames of the longest time, or again and again for a part of each 100 ms. The pauses spread to
the links between switches, and hold up the controller's probes there. No link fails, so every fault
that the controller reports is a false alarm.
"""

from __future__ import annotations

import random
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from bench.pause_storms import LONGEST, PAUSE
from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from bench.support.offered import traffic
from bench.support.watch import Watch
from knotless.base.flow_control import FlowControl
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.runtime import require_root
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load

FABRIC = "torus,4,4"
FRAMES_PER_S = 10_000.0
"""Of all hosts together: a paused link fills the buffers before it within a second, and the
emulator has time to spare."""
PROGRESS_S = 60.0


def measure(minutes: float, seed: int) -> dict[str, Any]:
    """Run storms for this long, and return what was paused and what the controller reported."""
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    plan = make_plan(load(FABRIC), PlanRequest(engine="updown", flow_control=FlowControl.PAUSE))
    lab = EmulatedFabric.from_plan(
        plan,
        name=f"storms-{secrets.token_hex(2)}",
        openflow_port=0,
        rest_port=0,
        static_arp=True,
        pause_share=1.0,
    )
    watch, storms = Watch(), 0
    names = [host.name for host in plan.fabric.hosts]
    with tempfile.TemporaryDirectory() as folder, lab:
        watch.follow(lab)
        with traffic(lab, FRAMES_PER_S / len(names), Path(folder) / "log"):
            end_s = time.monotonic() + 60 * minutes
            told_s = time.monotonic()
            while time.monotonic() < end_s:
                storm(lab, dice.choice(names), dice)
                storms += 1
                if time.monotonic() - told_s > PROGRESS_S:
                    told_s = time.monotonic()
                    left = max(0.0, end_s - told_s) / 60
                    faults = len(faults_of(watch))
                    click.echo(f"{storms} storms, {faults} faults, {left:.0f} min left", err=True)
        channels = lab.daemon.counters()["channels"]
        status = lab.daemon.status()
    switches = plan.fabric.switch_index
    paused_us = [
        sum(one["paused_us"] for one in channel["priorities"])
        for channel in channels
        if channel["from"].split(":")[0] in switches and channel["to"].split(":")[0] in switches
    ]
    return {
        "minutes": minutes,
        "seed": seed,
        "storms": storms,
        "channels": len(paused_us),
        "channels_paused": sum(us > 0 for us in paused_us),
        "paused_s": round(sum(paused_us) / 1e6, 1),
        "faults": faults_of(watch),
        "valid": status["valid"],
        "stretch": status["stretch"],
    }


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the lines in docs/decisions/probes.md."""
    return [line_of(run), "", machine_line(run)]


def line_of(run: Mapping[str, Any]) -> str:
    """Return one line about a run."""
    validity = "valid" if run["valid"] else "NOT valid"
    return (
        f"{run['storms']} storms in {run['minutes']:g} min; {run['channels_paused']} of"
        f" {run['channels']} channels between switches were paused, together for"
        f" {run['paused_s']:,.0f} s of virtual time; stretch {run['stretch']:.2f}, {validity};"
        f" {len(run['faults'])} faults reported."
    )


def storm(lab: EmulatedFabric, host: str, dice: random.Random) -> None:
    """Have a host pause its link for some seconds, and wait until it ends."""
    if dice.random() < 0.5:
        words = (LONGEST, dice.randint(1, 8), 1.0)
    else:
        words = (dice.randint(100, LONGEST), dice.randint(10, 80), 0.1)
    command = [sys.executable, "-c", PAUSE, *map(str, words), f"{host}-eth0"]
    with lab.host(host).popen(command) as process:
        process.wait()


def faults_of(watch: Watch) -> list[dict[str, Any]]:
    """Return the faults and failures that the controller has reported."""
    return [
        {"event": kind, **fields}
        for _, kind, fields in watch.events
        if kind == "fault" or (kind == "failures" and fields["failed"])
    ]


@click.command(epilog="Example: sudo .venv/bin/python -m bench.false_alarms --minutes 60 --json")
@click.option("--minutes", default=60.0, show_default=True, type=click.FloatRange(min=0.1))
@click.option("--seed", default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a line.")
@table_option(table_of)
def main(minutes: float, seed: int, as_json: bool) -> None:
    """Count the false alarms of probes during pause storms."""
    require_root()
    begun, results = about(), measure(minutes, seed)
    click.echo(as_stored(begun, **results) if as_json else line_of(results))


if __name__ == "__main__":
    run_benchmark(main)
