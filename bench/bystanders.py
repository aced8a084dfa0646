"""What three flows keep of their rate while another host abuses the fabric in every way it can.

    sudo .venv/bin/python -m bench.bystanders --json

On torus,4,4, h10, h14 and h5 send all they can to h11, h15 and h9. For each kind of abuse by h1
(``bench/support/abuse.py``), the rates at which the three send are measured in virtual time; links
are lossless, so as much arrives. A host may fill 2 % of its line with broadcasts, which all others
get, so flows must keep 97 % of their rate. Where frames or pauses were limited, a problem in
``knotless status`` must name h1.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from bench.support import abuse
from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.emulation.names import NETNS_DIRECTORY
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.report import report
from knotless.emulation.runtime import require_root
from knotless.topologies import load

FABRIC = "torus,4,4"
HOST, OTHER = "h1", "h3"
FLOWS = (("h10", "h11"), ("h14", "h15"), ("h5", "h9"))
KEPT = 0.97
SETTLE_S, WINDOW_S, LONGEST_S = 2.0, 8.0, 60.0
SEND = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    while True:
        out.sendto(bytes(1472), (sys.argv[1], 9))
"""
LIMITED = ("broadcast_limit",)
"""The causes of drops that a problem must explain."""


def measure(chosen: Sequence[str], window_s: float = WINDOW_S) -> dict[str, Any]:
    """Measure these kinds after the flows alone; return the figures."""
    name = f"bench-{secrets.token_hex(2)}"
    lab = EmulatedFabric(load(FABRIC), name=name, openflow_port=0, rest_port=0, static_arp=True)
    with lab, ExitStack() as ends:
        ip = {host.name: host.ip for host in lab.fabric.hosts}
        for source, to in FLOWS:
            sender = lab.host(source).popen([sys.executable, "-c", SEND, ip[to]])
            ends.callback(sender.wait)
            ends.callback(sender.kill)
        alone = _rates(lab, window_s)
        rows = []
        for kind in chosen:
            _await_calm(lab)
            with _abused(lab, kind):
                rows.append(_row(lab, kind, alone, window_s))
    return {
        "fabric": FABRIC,
        "flows": {f"{a} to {b}": round(alone[a], 3) for a, b in FLOWS},
        "limit": KEPT,
        "rows": rows,
    }


def _row(
    lab: EmulatedFabric, kind: str, alone: Mapping[str, float], window_s: float
) -> dict[str, Any]:
    rates = _rates(lab, window_s)
    shown = report(lab.names)
    assert shown is not None  # noqa: S101 - it runs
    status, counters = shown["emulator"], lab.daemon.counters()
    drops: dict[str, int] = {}
    for channel in counters["channels"]:
        for cause, count in channel["drops"].items():
            drops[cause] = drops.get(cause, 0) + count
    return {
        "kind": kind,
        "share": round(min(rates[name] / alone[name] for name in alone), 4),
        "stretch": status["stretch"],
        "valid": status["valid"],
        "drops": {cause: count for cause, count in sorted(drops.items()) if count},
        "pauses_limited": status["pauses_limited"],
        "problems": shown["problems"],
    }


def _await_calm(lab: EmulatedFabric) -> None:
    """Wait until no problem of the kind before is left. Raises RuntimeError."""
    deadline_s = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline_s:
        lab.daemon.reset()
        shown = report(lab.names)
        if shown is not None and not shown["problems"]:
            return
        time.sleep(0.5)
    raise RuntimeError(f"the problems before have not gone: {shown and shown['problems']}")


def _rates(lab: EmulatedFabric, window_s: float) -> dict[str, float]:
    """Return what each host sends in Mbit per second of virtual time."""
    time.sleep(SETTLE_S)
    lab.daemon.reset()
    before = lab.daemon.counters()
    time.sleep(window_s)
    after = lab.daemon.counters()
    seconds = (after["now_us"] - before["now_us"]) / 1e6
    senders = {source for source, _ in FLOWS}
    counts = [
        {one["channel"]: one["tx_bytes"] for one in each["channels"] if one["channel"] in senders}
        for each in (before, after)
    ]
    return {name: (counts[1][name] - counts[0][name]) * 8e-6 / seconds for name in senders}


@contextmanager
def _abused(lab: EmulatedFabric, kind: str) -> Iterator[None]:
    """Let the host abuse the fabric during the block. Raises RuntimeError if it ends before."""
    hosts = {
        what: {"mac": host.mac, "ip": host.ip}
        for host in lab.fabric.hosts
        for what in [{HOST: "own", OTHER: "other"}.get(host.name)]
        if what
    }
    space = NETNS_DIRECTORY / lab.names.host_namespace(HOST)
    words = [kind, f"{HOST}-eth0", json.dumps(hosts)]
    process = subprocess.Popen(
        ["nsenter", f"--net={space}", sys.executable, "-m", "bench.support.abuse", *words],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, **lab.program_environment()},
    )
    try:
        assert process.stdout is not None  # noqa: S101
        process.stdout.readline()
        yield
        if process.poll() is not None:
            raise RuntimeError(f"{kind}: the program has ended")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def limited(row: Mapping[str, Any]) -> bool:
    """Return whether frames or pauses of the host were limited."""
    return bool(row["pauses_limited"] or any(row["drops"].get(cause) for cause in LIMITED))


def named(row: Mapping[str, Any]) -> bool:
    """Return whether a problem names the host."""
    return any(re.search(rf"\b{HOST}\b", line) for line in row["problems"])


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/attacks.md."""
    rows = run["rows"]
    lost = [row["kind"] for row in rows if row["share"] < run["limit"]]
    return [
        "| h1 sends or runs | flows keep at least | stretch | run valid | limited | h1 is named |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row['kind']} | {100 * row['share']:.1f} %{' (missed)' * (row['kind'] in lost)}"
            f" | {row['stretch']:.2f} | {_word(row['valid'])} | {_word(limited(row))}"
            f" | {_word(named(row))} |"
            for row in rows
        ),
        "",
        f"Alone, the flows of `{run['fabric']}` send {min(run['flows'].values()):.2f} Mbit/s in"
        " virtual time, without the gaps between frames; the goal is"
        f" {100 * run['limit']:.0f} % of it, which {len(lost)} of {len(rows)} kinds miss.",
        machine_line({**run, "rows": ()}),
    ]


def _word(value: object) -> str:
    return "yes" if value else "no"


@click.command(epilog="Example: sudo .venv/bin/python -m bench.bystanders --json")
@click.option(
    "--kind", "chosen", multiple=True, type=click.Choice(abuse.kinds()), help="Only this one."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@table_option(table_of)
def main(chosen: Sequence[str], as_json: bool) -> None:
    """Measure what flows keep of their rate beside each kind of abuse by another host."""
    require_root()
    begun, results = about(), measure(chosen or abuse.kinds())
    click.echo(
        as_stored(begun, **results) if as_json else "\n".join(table_of({**begun, **results}))
    )


if __name__ == "__main__":
    run_benchmark(main)
