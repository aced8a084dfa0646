"""The time and the cost of a takeover by a standby controller when the active one is killed.

    sudo .venv/bin/python -m bench.takeover --times 25 --json

A fabric with two controllers carries all-to-all traffic, with the flow control that its plan
requires. Again and again the active controller gets SIGKILL. Measured is the time until the other
one is active and has read the rules of all switches; the dead one is then started again. Frames
that did not arrive although later ones of the same hosts did are lost.
"""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from bench.support.all_to_all import RECORD
from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from bench.support.offered import traffic
from bench.support.repair_figures import losses, spread
from knotless.base.errors import EmulationError
from knotless.cli.priority import default_priority_option
from knotless.emulation import rest, state
from knotless.emulation.controller import restart
from knotless.emulation.names import role_of
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.runtime import require_root
from knotless.topologies import load

FABRIC = "torus,4,4,hosts=4"
FRAMES_PER_S = 1200.0
"""Of all hosts together: a twentieth of what the emulator carries."""
LONGEST_S = 60.0
LOOK_S = 0.01
SETTLE_S = 1.0


def measure(spec: str, times: int) -> dict[str, Any]:
    """Kill the active controller this often, and return the figures."""
    fabric = load(spec)
    lab = EmulatedFabric(
        fabric,
        name=f"bench-{secrets.token_hex(2)}",
        openflow_port=0,
        rest_port=0,
        static_arp=True,
        controllers=2,
    )
    seconds: list[float | None] = []
    with tempfile.TemporaryDirectory() as folder, lab:
        log = Path(folder) / "log"
        with traffic(lab, FRAMES_PER_S / len(fabric.hosts), log):
            for _ in range(times):
                time.sleep(SETTLE_S)
                first = next(number for number in (0, 1) if role(lab, number) == "active")
                began_s = time.monotonic()
                kill(lab, first)
                done = has_become(lab, 1 - first, "active")
                seconds.append(time.monotonic() - began_s if done else None)
                restart(lab.names)
                if not has_become(lab, first, "standby"):
                    raise RuntimeError(f"controller {first + 1} is not on standby again")
            time.sleep(SETTLE_S)
        status = lab.daemon.status()
        records = np.fromfile(log, dtype=RECORD)
    return {
        "fabric": spec,
        "priority": str(lab.priority),
        "takeovers": times,
        "frames": len(records),
        "taken_over_ms": spread(seconds),
        "lost_frames": losses(records),
        "stretch": status["stretch"],
        "valid": status["valid"],
    }


def role(lab: EmulatedFabric, number: int) -> str | None:
    """Return a controller's role; None: it is dead, or active but has not read all rules yet."""
    try:
        status = rest.status(lab.controller_ports[number].rest)
    except EmulationError:
        return None
    now: str = status["role"]["state"]
    return None if now == "active" and not status["ready"] else now


def kill(lab: EmulatedFabric, number: int) -> None:
    """Kill a controller."""
    running = state.require_running(lab.names)
    os.kill(running.processes[role_of("controller", number)].pid, signal.SIGKILL)


def has_become(lab: EmulatedFabric, number: int, wanted: str) -> bool:
    """Wait until a controller has a role; return whether it was in time."""
    until_s = time.monotonic() + LONGEST_S
    while role(lab, number) != wanted:
        if time.monotonic() > until_s:
            return False
        time.sleep(LOOK_S)
    return True


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/performance.md."""
    took = run["taken_over_ms"]
    return [
        "| fabric | priority | takeovers | taken over, median | p99 | longest | frames"
        " | of them lost |",
        "|---|---|---|---|---|---|---|---|",
        f"| `{run['fabric']}` | {run['priority']}"
        f" | {run['takeovers'] - took['none']} of {run['takeovers']}"
        f" | {took['median']} ms | {took['p99']} ms | {took['max']} ms"
        f" | {run['frames']:,} | {run['lost_frames']} |",
        "",
        machine_line(run),
    ]


@click.command(epilog="Example: sudo .venv/bin/python -m bench.takeover --times 25 --json")
@click.option("--fabric", "spec", default=FABRIC, show_default=True)
@click.option("--times", default=25, show_default=True, type=click.IntRange(1, 10_000))
@default_priority_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@table_option(table_of)
def main(spec: str, times: int, as_json: bool) -> None:
    """Measure takeovers by a standby controller under traffic."""
    require_root()
    begun, results = about(), measure(spec, times)
    click.echo(
        as_stored(begun, **results) if as_json else "\n".join(table_of({**begun, **results}))
    )


if __name__ == "__main__":
    run_benchmark(main)
