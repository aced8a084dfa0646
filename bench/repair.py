"""``make bench-repair``: how fast a running fabric repairs its routes when links fail.

Links are cut and mended one after the other, with carrier loss, under all-to-all traffic and the
flow control that the plan requires. The port is down when the kernel reports that the interface of
a switch has lost its carrier. Measured from then on: the time to the last barrier reply of the new
routes, to the first frame that arrives on a path that used the link, and to the end of the change.

With ``--cut silent`` links keep their carrier and lose all frames, so that probes find that. Times
count from the cut on then, and ``found_ms`` is the time until the controller knows.
"""

from __future__ import annotations

import json
import random
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil

from bench.all_to_all import RECORD
from bench.entry import about, as_stored, machine_line, run_benchmark, table_option
from emulation.namespaces import inside
from emulation.network import EmulatedFabric
from emulation.runtime import require_root
from routing.plan import Plan, make_plan
from topologies import load
from topologies.fabric import Link

CAPACITY = 100_000
"""Channel-hops per second that the emulator carries at least, see docs/performance.md."""
LOADS = {"idle": 0.05, "half": 0.5}
"""Of the capacity."""
FABRICS = ("torus,4,4,hosts=4", "torus,10,10")
CHANGE_S = 20.0
"""Longest time to wait for a change."""
PAUSE_S = 0.5
_RTMGRP_LINK = 1


@dataclass
class Watch:
    """Events of the controller and of the switches' ports, each with its time (Unix, seconds)."""

    events: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)
    ports: list[float] = field(default_factory=list)

    def follow(self, lab: EmulatedFabric) -> None:
        """Start to listen."""
        with inside(f"/run/netns/{lab.names.switches_namespace}"):
            link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        link.bind((0, _RTMGRP_LINK))
        url = f"http://127.0.0.1:{lab.rest_port}/events"
        stream = urllib.request.urlopen(url, timeout=60)  # noqa: S310 - our own controller
        for target, source in ((self._ports, link), (self._events, stream)):
            threading.Thread(target=target, args=(source,), daemon=True).start()

    def _ports(self, link: socket.socket) -> None:
        while True:
            with suppress(OSError):  # messages that did not fit are lost
                link.recv(1 << 16)
            self.ports.append(time.time())

    def _events(self, stream: Any) -> None:
        kind = ""
        with suppress(OSError, ValueError):
            for line in stream:
                name, _, value = line.decode().strip().partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    fields = json.loads(value)
                    self.events.append((fields["time"], kind, fields))

    def after(self, begin: float, kind: str, failed: Sequence[str]) -> tuple[float, Any] | None:
        """Wait for an event about these failures; None if there is none in time."""
        until = time.time() + CHANGE_S
        while time.time() < until:
            for at, of, fields in self.events:
                if at >= begin and of == kind and fields.get("failed") == list(failed):
                    return at, fields
            time.sleep(0.002)
        return None


@dataclass(frozen=True)
class Cut:
    """One cut, or mend: when the port was down, and when the routes were repaired.

    ``port`` of a silent cut is when frames began to be lost. ``found`` is when the controller knew.
    """

    link: str
    failed: bool
    port: float
    found: float | None
    served: float | None
    done: float | None
    tier: int | None


@contextmanager
def traffic(lab: EmulatedFabric, frames_per_s: float, log: Path) -> Iterator[None]:
    """Have all hosts send to all others, and log what arrives."""
    hosts = [
        {"namespace": f"/run/netns/{lab.names.host_namespace(host.name)}", "ip": host.ip}
        for host in lab.fabric.hosts
    ]
    task = json.dumps({"hosts": hosts, "frames_per_s": frames_per_s, "log": str(log)}).encode()
    running = []
    try:
        for what in ("receive", "send"):
            command = [sys.executable, "-m", "bench.all_to_all", what]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            running.append(process)
            assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
            process.stdin.write(task)
            process.stdin.close()
            if not process.stdout.readline():
                raise RuntimeError(f"python -m bench.all_to_all {what} did not start")
        yield
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()
            time.sleep(0.5)  # what is under way arrives


def change(lab: EmulatedFabric, watch: Watch, link: Link, *, failed: bool, silent: bool) -> Cut:
    """Cut or mend a link, and wait for the routes."""
    cable, begin, seen = lab.cables.one(link.name), time.time(), len(watch.ports)
    if failed:
        lab.cables.cut(cable, silent=silent)
    else:
        lab.cables.mend(cable)
    what = [link.name] if failed else []
    served = watch.after(begin, "rerouted", what)
    done = watch.after(begin, "routes", what) if served else None
    port = watch.ports[seen] if len(watch.ports) > seen and not silent else begin
    found = watch.after(begin, "failures", what)
    return Cut(
        link.name,
        failed,
        port,
        found[0] if found else None,
        served[0] if served else None,
        done[0] if done else None,
        served[1]["tier"] if served else None,
    )


def settle(lab: EmulatedFabric) -> None:
    """Wait until no packets of older rules are left; go on after some time in any case."""
    until = time.monotonic() + CHANGE_S
    while time.monotonic() < until:
        routes = lab.controller_status()["routes"]
        if not (routes["changing"] or routes["older_rules"]):
            break
        time.sleep(0.05)
    time.sleep(PAUSE_S)


def measure(
    spec: str, load_name: str, cuts: int, longest_s: float, seed: int, *, silent: bool
) -> dict[str, Any]:
    """Cut and mend links of a fabric under a load, and return the figures."""
    fabric = load(spec)
    plan = make_plan(fabric)
    names = [host.name for host in fabric.hosts]
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    some = [(dice.choice(names), dice.choice(names)) for _ in range(400)]
    hops = [len(plan.path(a, b)) + 1 for a, b in some if a != b]
    frames_per_s = LOADS[load_name] * CAPACITY / (sum(hops) / len(hops)) / len(names)
    lab = EmulatedFabric(
        fabric, name=f"bench-{secrets.token_hex(2)}", openflow_port=0, rest_port=0, static_arp=True
    )
    found: list[Cut] = []
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder, lab:
        log = Path(folder) / "log"
        watch.follow(lab)
        began = time.monotonic()
        with traffic(lab, frames_per_s, log):
            time.sleep(2.0)
            psutil.cpu_percent()
            while len(found) < 2 * cuts and time.monotonic() - began < longest_s:
                link = dice.choice(fabric.links)
                for failed in (True, False):
                    found.append(change(lab, watch, link, failed=failed, silent=silent))
                    settle(lab)
            busy = psutil.cpu_percent()
        stretch = lab.daemon.status()["stretch"]
        records = np.fromfile(log, dtype=RECORD)
    return {
        "fabric": spec,
        "cut": "silent" if silent else "carrier",
        "load": load_name,
        "frames_per_s": round(frames_per_s * len(names)),
        "flow_control": plan.flow_control,
        **figures(plan, found, records),
        "stretch": stretch,
        "cpu_percent": busy,
        "load_average": round(psutil.getloadavg()[0], 1),
    }


def figures(plan: Plan, found: Sequence[Cut], records: Any) -> dict[str, Any]:
    """Return the figures of a run: times in ms, from port-down on."""
    cuts = [cut for cut in found if cut.failed]
    mends = [cut for cut in found if not cut.failed]
    users = users_of_links(plan, {cut.link for cut in cuts})
    arrivals = []
    for cut, after in zip(cuts, [*cuts[1:], None], strict=True):
        late = records["sent"] > cut.port
        late &= records["sent"] < (after.port if after else np.inf)
        mine = records[late]
        mine = mine[users[cut.link][mine["source"], mine["to"]]]
        arrivals.append(float(mine["at"].min()) - cut.port if len(mine) else None)
    return {
        "cuts": len(cuts),
        "tiers": dict(Counter(str(cut.tier) for cut in cuts)),
        "found_ms": spread([cut.found and cut.found - cut.port for cut in cuts]),
        "repaired_ms": spread([cut.served and cut.served - cut.port for cut in cuts]),
        "first_frame_ms": spread(arrivals),
        "complete_ms": spread([cut.done and cut.done - cut.port for cut in cuts]),
        "mend_tiers": dict(Counter(str(cut.tier) for cut in mends)),
        "mended_ms": spread([cut.served and cut.served - cut.port for cut in mends]),
        "lost_frames": losses(records),
    }


def spread(seconds: Sequence[float | None]) -> dict[str, float | int | None]:
    """Return median, 99th percentile and maximum, times 1,000; ``none`` did not happen in time."""
    known = [1000 * one for one in seconds if one is not None]
    if not known:
        return {"median": None, "p99": None, "max": None, "none": len(seconds)}
    median, p99, most = (round(float(np.percentile(known, at)), 1) for at in (50, 99, 100))
    return {"median": median, "p99": p99, "max": most, "none": len(seconds) - len(known)}


def losses(records: Any) -> int:
    """Return the frames that did not arrive although a later one of the same pair of hosts did."""
    order = np.lexsort((records["number"], records["to"], records["source"]))
    rows = records[order]
    same = (rows["source"][1:] == rows["source"][:-1]) & (rows["to"][1:] == rows["to"][:-1])
    missing = rows["number"][1:].astype(np.int64) - rows["number"][:-1] - 1
    return int(missing[same & (missing > 0)].sum())


def users_of_links(plan: Plan, links: set[str]) -> Mapping[str, Any]:
    """Return for each link which pairs of hosts use it in the intact plan, shape (hosts, hosts)."""
    hosts = plan.fabric.hosts
    found = {link: np.zeros((len(hosts), len(hosts)), dtype=bool) for link in links}
    ends: dict[tuple[str, int], str] = {}
    for link in plan.fabric.links:
        if link.name in links:
            ends |= {(link.a, link.a_port): link.name, (link.b, link.b_port): link.name}
    for i, source in enumerate(hosts):
        for j, to in enumerate(hosts):
            if i != j:
                for hop in plan.path(source.name, to.name):
                    if (hop.switch, hop.out_port) in ends:
                        found[ends[hop.switch, hop.out_port]][i, j] = True
    return found


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/performance.md."""
    lines = [
        "| fabric | cut | load | frames/s | cuts (tier 1) | found, median | longest"
        " | new routes, median | p99 | first frame, median | p99 | frames lost per cut"
        " | CPU, load average |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        found, repaired, first = row["found_ms"], row["repaired_ms"], row["first_frame_ms"]
        lines.append(
            f"| `{row['fabric']}` | {row['cut']} | {row['load']} | {row['frames_per_s']:,}"
            f" | {row['cuts']} ({row['tiers'].get('1', 0)})"
            f" | {found['median']} ms | {found['max']} ms"
            f" | {repaired['median']} ms | {repaired['p99']} ms"
            f" | {first['median']} ms | {first['p99']} ms"
            f" | {row['lost_frames'] / max(1, row['cuts']):.1f}"
            f" | {row['cpu_percent']:.0f} %, {row['load_average']} |"
        )
    return [*lines, "", machine_line(run)]


@click.command()
@click.option("--fabric", "specs", multiple=True, default=FABRICS, show_default=True)
@click.option("--load", "loads", multiple=True, type=click.Choice(list(LOADS)), default=list(LOADS))
@click.option("--cuts", type=click.IntRange(1, 10_000), default=25, show_default=True)
@click.option("--longest-s", default=240.0, show_default=True, help="Time for the cuts of a case.")
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--cut",
    "kinds",
    multiple=True,
    type=click.Choice(["carrier", "silent"]),
    default=("carrier",),
    show_default=True,
    help="How links fail; silent: they lose all frames and keep their carrier.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(
    specs: tuple[str, ...],
    loads: tuple[str, ...],
    cuts: int,
    longest_s: float,
    seed: int,
    kinds: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure repairs of a running fabric.

    Example: python -m bench.repair --cuts 100 --json > docs/benchmarks/repair.json
    """
    require_root()
    begun, rows = about(), []
    for spec, kind, load_name in product(specs, kinds, loads):
        silent = kind == "silent"
        rows.append(measure(spec, load_name, cuts, longest_s, seed, silent=silent))
        click.echo(json.dumps(rows[-1]), err=True)
    click.echo(
        as_stored(begun, rows=rows) if as_json else "\n".join(table_of({**begun, "rows": rows}))
    )


if __name__ == "__main__":
    run_benchmark(main)
