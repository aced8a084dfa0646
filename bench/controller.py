"""The time a controller takes to serve many switches.

The switches are fake ones (:mod:`bench.support.fake_switches`) that connect over loopback. Measured
from the start of the controller's process: until it answers over HTTP, which is after planning, and
until all switches are confirmed to hold their rules. Then the controller is killed and started
again: it must find everything as wanted, without a flow-mod.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import psutil

from bench.support.entry import Run, benchmark, machine_line, run_benchmark
from bench.support.fake_switches import FakeSwitch
from knotless.base.package import python_module
from knotless.base.ports import free_port
from knotless.topologies import load
from knotless.topologies.fabric import Fabric

LONGEST_S = 300.0
_POLL_S = 0.1
REPOSITORY = Path(__file__).resolve().parent.parent


def fakes(fabric: Fabric) -> list[FakeSwitch]:
    """Return a fake switch for each switch of a fabric, with its ports."""
    links, hosts = fabric.neighbours, fabric.hosts_at
    by_name = {
        name: FakeSwitch(switch.dpid, tuple(sorted({*links[name], *hosts[name]})))
        for switch in fabric.switches
        for name in [switch.name]
    }
    for name, switch in by_name.items():
        switch.peers = {
            port: (by_name[peer], peer_port) for port, (peer, peer_port) in links[name].items()
        }
    return list(by_name.values())


async def status(port: int) -> dict[str, Any] | None:
    """Return the controller's status; None if it does not answer yet."""

    def ask() -> dict[str, Any] | None:
        url = f"http://127.0.0.1:{port}/status"
        with suppress(OSError), urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310
            reply: dict[str, Any] = json.load(answer)
            return reply
        return None

    return await asyncio.to_thread(ask)


async def measured(
    command: Sequence[str], folder: Path, rest: int, switches: Sequence[FakeSwitch]
) -> dict[str, Any]:
    """Start a controller, wait until all switches are installed, kill it; return the figures.

    Raises RuntimeError, with the end of its log, if that takes longer than :data:`LONGEST_S`.
    """
    before = _sent(switches)
    environment = {**os.environ, "KNOTLESS_CONFIG": str(folder / "knotless.yaml")}
    began = time.monotonic()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        answered_s = None
        while True:
            await asyncio.sleep(_POLL_S)
            reply = await status(rest)
            elapsed_s = time.monotonic() - began
            if reply is not None:
                answered_s = answered_s or elapsed_s
                if reply["ready"]:
                    break
            if elapsed_s > LONGEST_S or process.poll() is not None:
                raise RuntimeError((folder / "log").read_text()[-2000:])
        used = psutil.Process(process.pid)
        cpu = used.cpu_times()
        after = _sent(switches)
        return {
            "planned_s": round(answered_s, 2),
            "ready_s": round(elapsed_s, 2),
            "cpu_s": round(cpu.user + cpu.system, 2),
            "rss_mb": round(used.memory_info().rss / 1e6),
            "flow_mods": after[0] - before[0],
            "group_mods": after[1] - before[1],
        }
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _sent(switches: Sequence[FakeSwitch]) -> tuple[int, int]:
    """Return the flow-mods and group-mods that the controllers have sent so far."""
    return sum(switch.flow_mods for switch in switches), sum(
        switch.group_mods for switch in switches
    )


async def measure(spec: str, *, with_ryu: bool = False) -> dict[str, Any]:
    """Install the rules of a fabric in fake switches, and start the controller again."""
    fabric = load(spec)
    switches = fakes(fabric)
    openflow, rest = free_port(), free_port()
    command = python_module("knotless", "controller", "run", f"--port={openflow}")
    if with_ryu:
        manager = str(Path(sys.executable).with_name("ryu-manager"))
        command = [manager, f"--ofp-tcp-listen-port={openflow}", "controller/app.py"]
    served = [asyncio.create_task(switch.serve(openflow)) for switch in switches]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = f"fabric: {spec}\nrest: {{port: {rest}}}\n"
        (folder / "knotless.yaml").write_text(config, encoding="utf-8")
        try:
            runs = [await measured(command, folder, rest, switches) for _ in range(2)]
        finally:
            for task in served:
                task.cancel()
    return {
        "fabric": spec,
        "switches": len(switches),
        "hosts": len(fabric.hosts),
        "rules": sum(len(switch.rules) for switch in switches),
        "install": runs[0],
        "restart": runs[1],
        "load_average": round(psutil.getloadavg()[0], 1),
    }


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/performance.md."""
    lines = [
        "| fabric | switches | rules | planned | installed | CPU | memory | restarted"
        " | flow-mods of the restart |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        install, restart = row["install"], row["restart"]
        lines.append(
            f"| `{row['fabric']}` | {row['switches']:,} | {row['rules']:,}"
            f" | {install['planned_s']:.1f} s | {install['ready_s']:.1f} s"
            f" | {install['cpu_s']:.1f} s | {install['rss_mb']} MB"
            f" | {restart['ready_s']:.1f} s | {restart['flow_mods']} |"
        )
    return [*lines, "", machine_line(run)]


@benchmark(table_of)
@click.option(
    "--fabric", "specs", multiple=True, default=("torus,10,10", "lsft,17"), show_default=True
)
@click.option("--with-ryu", is_flag=True, help="Run the controller as an application of Ryu.")
def main(run: Run, specs: tuple[str, ...], with_ryu: bool) -> None:
    """Measure a controller with many fake switches; all times are from its start on.

    Example: python -m bench.controller --json > docs/benchmarks/controller.json
    """
    for spec in specs:
        run.add(asyncio.run(measure(spec, with_ryu=with_ryu)))


if __name__ == "__main__":
    run_benchmark(main)
