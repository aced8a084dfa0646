"""Storms of pauses made with the simulator, and written as the state of SONiC switches.

Every host of a fabric of routers is behind a switch of its own in the simulation, its network
interface: if this takes frames slowly or not at all, it pauses the leaf, as real ones do.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless.importers.fabric import TableFabric
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Scenario
from knotless.simulation.run import simulate
from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns import Pattern
from tests.support.router_dumps import HOST_PORT, Qos, RouterNet, plain_qos
from tests.support.router_nets import leaf_spine

End = tuple[str, str]
DURATION_US, SAMPLES = 20_000.0, 100
LINK_MBPS = 1000.0


@dataclass
class Storm:
    """Which ports received pauses: ``stopped`` to the end, all of ``frames`` at some time.

    ``knot`` are the ports of the deadlock that the simulator has found. With ``counters_only``,
    no watchdog was on.
    """

    net: RouterNet
    slow: list[str]
    counters_only: bool = False
    stopped: set[End] = field(default_factory=set)
    frames: dict[End, int] = field(default_factory=dict)
    knot: set[End] = field(default_factory=set)


def ring(size: int) -> RouterNet:
    """Return a ring of routers that send everything clockwise."""
    names = [f"r{n}" for n in range(size)]
    cables = [((names[n], "Ethernet0"), (names[(n + 1) % size], "Ethernet4")) for n in range(size)]
    net = RouterNet(
        cables, hosts={(name, "Vlan10"): f"10.{n}.0.1/24" for n, name in enumerate(names)}
    )
    for here in names:
        net.routes[here] = {
            f"10.{n}.0.0/24": [("", "Vlan10")] if there == here else [("169.254.0.1", "Ethernet0")]
            for n, there in enumerate(names)
        }
    net.qos = {router: plain_qos(net.ports(router)) for router in net.routers}
    return net


def storm(kind: str, seed: int) -> Storm:
    """Return a ``deadlock``, a ``slow`` or ``stopped`` interface, or ``two`` of these."""
    rng = random.Random(f"{kind}/{seed}")  # noqa: S311
    if kind == "deadlock":
        net, slow = ring(rng.randint(5, 8)), list[str]()  # four share their links without pauses
    else:
        net = leaf_spine(rng.randint(3, 5), rng.randint(1, 3))
        leaves = [name for name in net.routers if name.startswith("leaf")]
        slow = sorted(rng.sample(leaves, 2 if kind == "two" else 1))
    rates = {
        leaf: LINK_MBPS * (rng.uniform(0.02, 0.1) if kind == "slow" else 1e-4) for leaf in slow
    }
    result = Storm(net, slow, counters_only=kind == "slow" and seed % 2 == 1)
    _simulate(result, rates, seed)
    return result


def _simulate(result: Storm, rates: dict[str, float], seed: int) -> None:
    imported = _with_interfaces(result.net)
    fabric = imported.fabric
    hosts = tuple(
        replace(
            host, rate_mbps=rates.get(host.switch.removeprefix("nic-"), LINK_MBPS), delay_us=1.0
        )
        for host in fabric.hosts
    )
    links = tuple(replace(link, rate_mbps=LINK_MBPS, delay_us=1.0) for link in fabric.links)
    fabric = replace(fabric, hosts=hosts, links=links)
    state = replace(imported.traffics[0].state, fabric=fabric)
    samples: list[Any] = []

    def sample(simulation: Any, _: object) -> None:
        for number in range(1, SAMPLES + 1):
            samples.append(simulation.sample(int(DURATION_US * 1e6 * number / SAMPLES)))
        while simulation.run(1_000_000):
            pass

    done = simulate(
        Scenario(
            make_plan(fabric, "minimal"),
            Pattern(
                "all", "every host to every other one", lambda fabric, _: iter([_pairs(fabric)])
            ),
            Load("saturate"),
            flow_control="pfc",
            duration_us=DURATION_US,
            seed=seed,
            state=state,
        ),
        runner=sample,
    )
    last = [(after[2] - before[2]).sum(axis=1) for before, after in pairwise(samples)]
    interval_ps = DURATION_US * 1e6 / SAMPLES
    named = imported.channels.port_names
    index = fabric.switch_index
    of_deadlock = done.report.deadlock
    knot = {channel for channel, _ in of_deadlock.cycle} if of_deadlock is not None else set()
    for channel, name in enumerate(done.channels.names):
        switch, _, port = name.partition(":")
        if not port or switch.startswith("nic-"):
            continue
        end = (switch, named[index[switch], int(port)])
        if pauses := int(np.asarray(done.report.channel_pauses)[channel].sum()):
            result.frames[end] = pauses
        if all(paused[channel] >= 0.999 * interval_ps for paused in last[-5:]):
            result.stopped.add(end)
        if channel in knot:
            result.knot.add(end)


def _pairs(fabric: Fabric) -> NDArray[np.int32]:
    count = range(len(fabric.hosts))
    return np.array([(a, b) for a in count for b in count if a != b], dtype=np.int32)


def _with_interfaces(net: RouterNet) -> TableFabric:
    """Return the fabric in which each host has a switch of its own, without QoS."""
    wide = RouterNet(list(net.cables), qos={}, routes={})
    for (leaf, _), prefix in net.hosts.items():
        wide.cables.append(((leaf, HOST_PORT), (f"nic-{leaf}", "Ethernet0")))
        wide.hosts[f"nic-{leaf}", "Vlan10"] = prefix
        wide.routes[f"nic-{leaf}"] = {"0.0.0.0/0": [("169.254.9.1", "Ethernet0")]}
    for router, routes in net.routes.items():
        wide.routes[router] = {
            prefix: [
                (address or "169.254.9.2", HOST_PORT if port == "Vlan10" else port)
                for address, port in hops
            ]
            for prefix, hops in routes.items()
        }
    for (leaf, _), prefix in net.hosts.items():
        own = prefix.replace(".0.1/24", ".0.0/24")
        wide.routes[f"nic-{leaf}"][own] = [("", "Vlan10")]
    wide.qos = dict.fromkeys(wide.routes, Qos())
    with tempfile.TemporaryDirectory(prefix="knotless-storm-") as folder:
        imported = read_paths([wide.write(Path(folder))])
    assert isinstance(imported, TableFabric)
    return imported


FORMS = ("instorm", "pfcwd", "counters-db")


def write(result: Storm, folder: Path, seed: int, left_out: Iterable[str] = ()) -> Path:
    """Write the switches except ``left_out``, each in a form in which SONiC tells about pauses."""
    rng = random.Random(seed)  # noqa: S311
    net, priority = result.net, rng.choice([3, 4])
    for leaf in result.slow:
        net.more.setdefault(leaf, {})["DEVICE_NEIGHBOR"] = {
            HOST_PORT: {"name": f"gpu-of-{leaf}", "port": "eth0"}
        }
    for router in net.routers:
        net.more.setdefault(router, {})["PORT"] = {HOST_PORT: {"speed": "100000"}}
    net.write(folder)
    for router in net.routers:
        directory = folder / router
        if router in left_out:
            for file in directory.iterdir():
                file.unlink()
            directory.rmdir()
            continue
        ports = [*net.ports(router), HOST_PORT]
        stopped = {port for port in ports if (router, port) in result.stopped}
        form = "counters" if result.counters_only else rng.choice(FORMS)
        states = {
            (port, queue): "stormed" if port in stopped and queue == priority else "operational"
            for port in ports
            for queue in (3, 4)
        }
        _write_counters(directory, router, ports, result, priority)
        if form == "instorm" and stopped:
            file = directory / "appl_db.json"
            values = json.loads(file.read_text())
            for port in stopped:
                values[f"PFC_WD_TABLE_INSTORM:{port}"] = {str(priority): "storm"}
            file.write_text(json.dumps(values))
        elif form == "pfcwd":
            rows = [
                f"{f'{port}:{queue}':>14}  {state:>11}"
                f"  {'1/0' if state == 'stormed' else '0/0':>25}  {'0/0':>12}"
                for (port, queue), state in states.items()
            ]
            head = f"{'QUEUE':>14}  {'STATUS':>11}  STORM DETECTED/RESTORED    {'TX OK/DROP':>12}"
            rule = "-" * 14 + "  " + "-" * 11 + "  " + "-" * 25 + "  " + "-" * 12
            (directory / "pfcwd").write_text("\n".join([head, rule, *rows]) + "\n")
        elif form == "counters-db":
            queues = {f"{port}:{queue}": f"oid:0x{n:x}" for n, (port, queue) in enumerate(states)}
            database: dict[str, Any] = {"COUNTERS_QUEUE_NAME_MAP": queues}
            for (port, queue), state in states.items():
                oid = queues[f"{port}:{queue}"]
                database[f"COUNTERS:{oid}"] = {"PFC_WD_STATUS": state}
            (directory / "counters_db.json").write_text(json.dumps(database))
    return folder


def _write_counters(
    directory: Path, router: str, ports: list[str], result: Storm, priority: int
) -> None:
    columns = "  ".join(f"PFC{n:<3}" for n in range(8))
    lines = []
    for way in ("Rx", "Tx"):
        lines += [f"{'Port ' + way:>12}  {columns}", "-" * 12 + "  ------" * 8]
        for port in ports:
            count = result.frames.get((router, port), 0) if way == "Rx" else 0
            cells = [f"{count:,}" if n == priority else "0" for n in range(8)]
            lines.append(f"{port:>12}  " + "  ".join(f"{cell:>6}" for cell in cells))
        lines.append("")
    (directory / "pfc").write_text("\n".join(lines))
