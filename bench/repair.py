"""The time a running fabric takes to repair its routes when links fail.

Links are cut and mended one after the other, with carrier loss, under all-to-all traffic and the
flow control that the plan requires. Before each cut the controller has planned ahead what to do
when any link fails; with ``--soon`` the next cut comes half a second after the last change. The
port is down when the kernel reports that the interface of a switch has lost its carrier. Measured
from then on: the time to the last barrier reply of the new routes, to the first frame that arrives
on a path that used the link, and to the end of the change. At ``half`` load, hosts send half of
what the emulator carries if they send all they can, which is measured first. With ``--attack`` a
host, other switches or HTTP clients attack the fabric's controller at the same time, see
:mod:`bench.support.attack`.

With ``--failures N``, N links fail one after the other, each a second after the one before, and are
mended together when all are served; ``--cuts`` counts these sets. What is measured is the time from
each cut until all switches have confirmed the routes without it, and how many frames are lost in
all, at ``idle`` load.

With ``--cut silent`` links keep their carrier and lose all frames, so that probes find that. Times
count from the cut on then, and ``found_ms`` is the time until the controller knows.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil

from bench.support.all_to_all import RECORD
from bench.support.attack import ATTACKS, attacked
from bench.support.entry import Run, benchmark, run_benchmark
from bench.support.in_a_row import cut_in_a_row, figures_in_a_row, sets_of_links
from bench.support.offered import carried, channels_per_frame, lab_of, traffic
from bench.support.repair_figures import Cut, figures, losses
from bench.support.repair_tables import table_of_cuts
from bench.support.watch import CHANGE_S, Watch
from knotless.base.ports import free_port
from knotless.cli.numbers import Whole
from knotless.cli.priority import default_priority_option
from knotless.emulation import state
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.priority import Part, Priority, default_priority, prioritise
from knotless.emulation.requirements import require_fabrics
from knotless.results.machine import versions
from knotless.routing.plan import make_plan
from knotless.routing.request import PROTECTIONS, PlanRequest, Protection
from knotless.topologies import load
from knotless.topologies.fabric import Link

IDLE, HALF = "idle", "half"
IDLE_HOPS_PER_S = 5_000.0
"""Channel-hops per second: frames to see repairs by."""
LOADS = (IDLE, HALF)
FABRICS = ("torus,4,4,hosts=4", "torus,10,10")
PAUSE_S = 0.5
"""Pause before the next cut."""
PROGRESS_S = 60.0
"""Time between two lines about how far it is."""
AHEAD_S = 900.0
"""Longest time to wait until repairs are planned ahead."""
CASE = ("fabric", "cut", "load", "soon", "attack", "protection", "priority")
"""The columns that tell the rows of a stored run apart."""


@contextmanager
def prioritised() -> Iterator[None]:
    """Take times when things happen; what was started before, and is later, keeps its priority.

    At ordinary priority nothing changes: the fabric shares the machine with this process.
    """
    if default_priority.get() == Priority.NORMAL:
        yield
        return
    prioritise(Part.PROGRAM, Priority.REALTIME)
    try:
        yield
    finally:
        for task in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setscheduler(int(task.name), os.SCHED_OTHER, os.sched_param(0))


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
    detected = watch.after(begin, "failures", what)
    return Cut(
        link.name,
        failed,
        port,
        detected[0] if detected else None,
        served[0] if served else None,
        done[0] if done else None,
        served[1]["tier"] if served else None,
        bool(served and served[1]["planned_ahead"]),
    )


def settle(lab: EmulatedFabric, *, failed: bool, soon: bool) -> None:
    """Wait until no packets of older rules are left and, unless ``soon``, the next is planned.

    If a link has ``failed``, that is its return; otherwise the failure of any link. Go on after
    some time in any case.
    """

    def has_settled(routes: Mapping[str, Any]) -> bool:
        return not (routes["changing"] or routes["older_rules"])

    def is_planned(routes: Mapping[str, Any]) -> bool:
        ahead = routes["planned_ahead"]
        return bool(ahead["complete"] or (failed and ahead["ways"]))

    _wait(lab, has_settled, CHANGE_S)
    if not soon:
        _wait(lab, is_planned, AHEAD_S)
    time.sleep(PAUSE_S)


def _wait(lab: EmulatedFabric, reached: Callable[[Mapping[str, Any]], bool], most_s: float) -> None:
    until = time.monotonic() + most_s
    while not reached(lab.controller_status()["routes"]) and time.monotonic() < until:
        time.sleep(0.05)


def measure(
    spec: str,
    load_name: str,
    cuts: int,
    longest_s: float,
    seed: int,
    *,
    silent: bool,
    soon: bool,
    attack: str | None,
    protection: Protection,
) -> dict[str, Any]:
    """Cut and mend links of a fabric under a load, and return the figures."""
    commit = versions()["commit"]
    fabric = load(spec)
    plan = make_plan(fabric, PlanRequest(protection=protection))
    most = carried(plan) if load_name == HALF else None
    hops_per_s = IDLE_HOPS_PER_S if most is None else most / 2
    frames_per_s = hops_per_s / channels_per_frame(plan) / len(fabric.hosts)
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    lab = lab_of(plan)
    if attack == "switches":
        lab.openflow_port = free_port()  # by default nobody else can reach the controller
    changes: list[Cut] = []
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder, lab:
        log = Path(folder) / "log"
        watch.follow(lab)
        attackers = attacked(attack, target(lab))
        with traffic(lab, frames_per_s, log), attackers as attackers_did, prioritised():
            time.sleep(2.0)
            settle(lab, failed=False, soon=soon)
            began = told = time.monotonic()
            deadlocks = 0
            psutil.cpu_percent()
            while len(changes) < 2 * cuts and time.monotonic() - began < longest_s:
                link = rng.choice(fabric.links)
                for failed in (True, False):
                    changes.append(change(lab, watch, link, failed=failed, silent=silent))
                    settle(lab, failed=failed, soon=soon)
                    deadlocks += lab.daemon.deadlock() is not None
                if time.monotonic() - told > PROGRESS_S:
                    told = time.monotonic()
                    click.echo(f"{spec}: {len(changes) // 2} of {cuts} cuts", err=True)
            busy = psutil.cpu_percent()
            memory_mb = controller_peak_mb(lab)
        stretch, dropped = lab.daemon.status()["stretch"], drops(lab)
        records = np.fromfile(log, dtype=RECORD)
    return {
        "fabric": spec,
        "cut": "silent" if silent else "carrier",
        "load": load_name,
        "soon": soon,
        "attack": attack,
        "attackers_did": attackers_did,
        "protection": protection,
        "priority": str(default_priority.get()),
        "carried_hops_per_s": None if most is None else round(most),
        "frames_per_s": round(frames_per_s * len(fabric.hosts)),
        "flow_control": plan.flow_control,
        **figures(plan, changes, records),
        "dropped": dropped,
        "deadlocks": deadlocks,
        "switch_processes": lab.switch_processes,
        "stretch": stretch,
        "controller_peak_mb": memory_mb,
        "cpu_percent": busy,
        "load_1min": round(psutil.getloadavg()[0], 1),
        "commit": commit,
    }


def measure_in_a_row(spec: str, failures: int, sets: int, seed: int) -> dict[str, Any]:
    """Cut links one after the other, and return how each failure was served."""
    commit, fabric = versions()["commit"], load(spec)
    plan = make_plan(fabric, PlanRequest())
    frames_per_s = IDLE_HOPS_PER_S / channels_per_frame(plan) / len(fabric.hosts)
    lab, watch, served = lab_of(plan), Watch(), []
    with tempfile.TemporaryDirectory() as folder, lab:
        log = Path(folder) / "log"
        watch.follow(lab)
        settle(lab, failed=False, soon=True)
        with traffic(lab, frames_per_s, log):
            for number, links in enumerate(sets_of_links(fabric, failures, sets, seed), 1):
                served.append(cut_in_a_row(lab, watch, links))
                click.echo(f"{spec}: {number} of {sets} sets of failures", err=True)
        stretch = lab.daemon.status()["stretch"]
        records = np.fromfile(log, dtype=RECORD)
    return {
        **dict.fromkeys(CASE),
        "fabric": spec,
        "cut": f"{failures} in a row",
        "load": IDLE,
        "priority": str(default_priority.get()),
        "frames_per_s": round(frames_per_s * len(fabric.hosts)),
        **figures_in_a_row(served),
        "lost_frames": losses(records),
        "stretch": stretch,
        "load_1min": round(psutil.getloadavg()[0], 1),
        "commit": commit,
    }


def drops(lab: EmulatedFabric) -> dict[str, int]:
    """Return the frames that the emulator has dropped or that switches have, by reason."""
    frames = Counter[str]()
    for channel in lab.daemon.counters()["channels"]:
        frames.update(channel["drops"])
    return {reason: count for reason, count in frames.items() if count}


def target(lab: EmulatedFabric) -> dict[str, Any]:
    """Return what an attack needs to know: a host and the ports of the controller."""
    host = lab.fabric.hosts[0]
    return {
        "namespace": f"/run/netns/{lab.names.host_namespace(host.name)}",
        "interface": f"{host.name}-eth0",
        "mac": host.mac,
        "openflow": lab.openflow_port,
        "rest": lab.rest_port,
    }


def controller_peak_mb(lab: EmulatedFabric) -> float:
    """Return the most memory that the controller has had, in MB."""
    running = state.read(lab.names)
    if running is not None:
        pid = running.processes["controller"].pid
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) * 1024 / 1e6, 1)
    raise RuntimeError("the fabric's controller does not run")


@benchmark(table_of_cuts, keys=CASE)
@click.option("--fabric", "specs", multiple=True, default=FABRICS, show_default=True)
@click.option("--load", "loads", multiple=True, type=click.Choice(LOADS), default=LOADS)
@click.option("--cuts", type=Whole(1, 10_000), default=25, show_default=True)
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
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    type=click.Choice(["none", *ATTACKS]),
    default=("none",),
    show_default=True,
    help="Who attacks: a host with frames, or switches or clients of the controller, slow or busy.",
)
@click.option(
    "--protection",
    "protections",
    multiple=True,
    type=click.Choice(PROTECTIONS),
    default=("none",),
    show_default=True,
    help="Whether switches have backup paths.",
)
@default_priority_option
@click.option("--soon", is_flag=True, help="Do not wait until repairs are planned ahead.")
@click.option(
    "--failures",
    type=Whole(2, 8),
    help="So many links fail in a row, a second apart, at idle load.",
)
def main(
    run: Run,
    specs: tuple[str, ...],
    loads: tuple[str, ...],
    cuts: int,
    longest_s: float,
    seed: int,
    kinds: tuple[str, ...],
    attacks: tuple[str, ...],
    protections: tuple[Protection, ...],
    soon: bool,
    failures: int | None,
) -> None:
    """Measure repairs of a running fabric.

    Example: python -m bench.repair --cuts 100 --into docs/benchmarks/repair.json
    """
    require_fabrics()
    if failures is not None:
        for spec in specs:
            run.add(measure_in_a_row(spec, failures, cuts, seed))
        return
    cases = product(specs, kinds, loads, attacks, protections)
    for spec, kind, load_name, attack, protection in cases:
        run.add(
            measure(
                spec,
                load_name,
                cuts,
                longest_s,
                seed,
                silent=kind == "silent",
                soon=soon,
                attack=None if attack == "none" else attack,
                protection=protection,
            )
        )


if __name__ == "__main__":
    run_benchmark(main)
