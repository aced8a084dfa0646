"""Capacity of the emulated fabric, compared with plain veth links on the same Open vSwitch.

The fabric is a 4x4 torus. Every host sends to the host with the same number on the switch one
step ahead in x and in y. With one host per switch, no two flows share a channel; with four, the
four flows of a switch share each channel. So the fair share is exact and can be reached.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import click
import psutil

from bench.support.entry import Run, benchmark, machine_line, run_benchmark
from knotless.base.errors import EmulationError
from knotless.base.flow_control import FlowControl
from knotless.cli.numbers import Number
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.requirements import require_fabrics
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.traffic import theory

ROUTING = PlanRequest(engine="dor", vcs=2)
WARM_UP_S = 1.5
WINDOW_S = 2.5
CLOSE_ENOUGH = 0.01
IN_TIME_STRETCH = 1.05
"""Up to this stretch a run counts as in time."""
DELAY_US = 5000.0
"""One-way delay of every link, and so the longest time that a frame may take in Open vSwitch."""
RATES_MBPS = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0)
PLAIN_STEPS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""The rates offered to plain links, as multiples of the best rate of the emulated fabric."""


@dataclass(frozen=True)
class Measurement:
    """One window of steady traffic.

    ``hops_per_s`` counts each delivered frame once per channel on its path, including the two
    channels of hosts. ``of_theory`` is the ratio of delivered to fair share (emulated) or to
    offered (plain). ``cpu`` is in cores: of the emulator, of Open vSwitch, of sender and receiver
    together, and of the rest, which is mostly kernel work that belongs to no process.
    """

    links: str
    hosts: int
    rate_mbps: float
    offered_mbps: float
    delivered_mbps: float
    of_theory: float
    hops_per_s: float
    stretch: float | None
    valid: bool
    lost_frames: int
    cpu: Mapping[str, float]

    @property
    def full(self) -> bool:
        """True if all datagrams were delivered, within CLOSE_ENOUGH."""
        return abs(self.of_theory - 1) <= CLOSE_ENOUGH

    @property
    def good(self) -> bool:
        """True if all datagrams were delivered, in a valid run that kept up with real time."""
        in_time = self.stretch is None or self.stretch <= IN_TIME_STRETCH
        return in_time and self.valid and self.full

    def as_json(self) -> dict[str, Any]:
        """Return the measurement as a value for :func:`json.dumps`."""
        return {**asdict(self), "good": self.good}


def torus(hosts_per_switch: int, delay_us: float = DELAY_US) -> Fabric:
    """Return the fabric to measure."""
    return load(f"torus,4,4,hosts={hosts_per_switch},delay={delay_us:g}")


def pairs(fabric: Fabric) -> list[tuple[int, int]]:
    """Return each host with the host of its number on the switch one step ahead in x and y."""
    assert fabric.grid is not None  # noqa: S101 - a torus has one
    x, y = fabric.grid.dims
    each = len(fabric.hosts) // (x * y)
    flows = []
    for index in range(len(fabric.hosts)):
        switch, number = divmod(index, each)
        target = (switch // x + 1) % y * x + (switch % x + 1) % x
        flows.append((index, target * each + number))
    return flows


def hops(fabric: Fabric) -> float:
    """Return the mean number of channels on a flow's path, including the two of hosts."""
    plan = make_plan(fabric, ROUTING)
    names = [host.name for host in fabric.hosts]
    lengths = [len(plan.path(names[a], names[b])) + 1 for a, b in pairs(fabric)]
    return sum(lengths) / len(lengths)


def fair_share_mbps(fabric: Fabric, rate_mbps: float) -> float:
    """Return the goodput of a flow when every host sends at full rate."""
    sharing = len(fabric.hosts) // len(fabric.switches)
    return rate_mbps / sharing / theory.load_per_payload("udp", tagged=True)


class Traffic:
    """The running sender and receiver processes."""

    def __init__(self, lab: EmulatedFabric, offered_mbps: float | None) -> None:
        hosts = lab.fabric.hosts
        rate = None if offered_mbps is None else offered_mbps * 1e6 / 8 / theory.UDP_PAYLOAD_BYTES
        flows = [
            {
                "source_namespace": f"/run/netns/{lab.names.host_namespace(hosts[a].name)}",
                "destination_namespace": f"/run/netns/{lab.names.host_namespace(hosts[b].name)}",
                "destination_ip": hosts[b].ip,
                "datagrams_per_s": rate,
            }
            for a, b in pairs(lab.fabric)
        ]
        self.processes: list[subprocess.Popen[bytes]] = []
        for what in ("receive", "send"):
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.support.traffic", what],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self.processes.append(process)
            assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
            process.stdin.write(json.dumps(flows).encode())
            process.stdin.close()
            # The first report means that the sockets are open.
            if not process.stdout.readline():
                self.close()
                raise RuntimeError(f"python -m bench.support.traffic {what} did not start")

    def close(self) -> list[list[dict[str, float]]]:
        """End both; return the reports of the receiver and of the sender."""
        reports = []
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            assert process.stdout is not None  # noqa: S101
            with process.stdout:
                out = process.stdout.read()
            process.wait()
            reports.append([json.loads(line) for line in out.splitlines() if line.endswith(b"}")])
        return reports


def _counted(reports: Sequence[Mapping[str, float]], begin: float, end: float) -> float:
    """Return datagrams per second between the reports nearest to ``begin`` and ``end``."""
    first = min(reports, key=lambda report: abs(report["t"] - begin))
    last = min(reports, key=lambda report: abs(report["t"] - end))
    return (last["datagrams"] - first["datagrams"]) / max(1e-9, last["t"] - first["t"])


def _cpu_s(groups: Mapping[str, Sequence[int]]) -> dict[str, float]:
    spent = {}
    for name, pids in groups.items():
        times = [psutil.Process(pid).cpu_times() for pid in pids]
        spent[name] = sum(t.user + t.system for t in times)
    whole = psutil.cpu_times()
    spent["all"] = sum(whole) - whole.idle - whole.iowait - whole.guest - whole.guest_nice
    return spent


def measure(lab: EmulatedFabric, rate_mbps: float, offered_mbps: float | None) -> Measurement:
    """Send on a running fabric, and measure the window after the warm-up."""
    fabric, emulated = lab.fabric, lab.links == "emulated"
    if emulated:
        names = [link["name"] for link in json.loads(lab.names.emulator_file.read_text())["links"]]
        changes = [{"name": name, "rate_mbps": rate_mbps} for name in names]
        lab.daemon.reset(flow_control=FlowControl.PFC, links=changes)
    traffic = Traffic(lab, offered_mbps)
    try:
        time.sleep(WARM_UP_S)
        groups = _processes(lab, traffic)
        cpu = _cpu_s(groups)
        before = lab.daemon.counters() if emulated else None
        begin = time.monotonic()
        time.sleep(WINDOW_S)
        end = time.monotonic()
        after = lab.daemon.counters() if emulated else None
        status = lab.daemon.status() if emulated else None
        spent = _cpu_s(groups)
    finally:
        received, sent = traffic.close()
    delivered = _counted(received, begin, end)
    hops_per_s = delivered * hops(fabric)
    if before is not None and after is not None:
        moved = sum(c["rx_frames"] for c in after["channels"])
        moved -= sum(c["rx_frames"] for c in before["channels"])
        hops_per_s = moved * 1e6 / (after["now_us"] - before["now_us"])
    payload_mbit = 8 * theory.UDP_PAYLOAD_BYTES / 1e6
    share = fair_share_mbps(fabric, rate_mbps)
    offered = _counted(sent, begin, end) * payload_mbit / len(fabric.hosts)
    got = delivered * payload_mbit / len(fabric.hosts)
    shares = {name: (spent[name] - cpu[name]) / (end - begin) for name in spent}
    everything = shares.pop("all")
    shares["other"] = max(0.0, everything - sum(shares.values()))
    return Measurement(
        links=lab.links,
        hosts=len(fabric.hosts),
        rate_mbps=rate_mbps,
        offered_mbps=round(offered, 4),
        delivered_mbps=round(got, 4),
        of_theory=round(got / (share if emulated else max(offered, 1e-9)), 4),
        hops_per_s=round(hops_per_s),
        stretch=status["stretch_now"] if status is not None else None,
        valid=status is None or bool(status["valid"]),
        lost_frames=after["lost_frames"]
        if after is not None
        else max(0, round((_counted(sent, begin, end) - delivered) * WINDOW_S)),
        cpu={name: round(value, 3) for name, value in shares.items()},
    )


def _processes(lab: EmulatedFabric, traffic: Traffic) -> dict[str, list[int]]:
    """Return the processes whose CPU time is reported separately."""
    state = json.loads(lab.names.state_file.read_text(encoding="utf-8"))
    pids = {role: int(process["pid"]) for role, process in state["processes"].items()}
    groups = {"ovs": lab.ovs.pids, "traffic": [p.pid for p in traffic.processes]}
    if "emulator" in pids:
        groups["emulator"] = [pids["emulator"]]
    return groups


@contextmanager
def running(hosts_per_switch: int, links: str, delay_us: float) -> Iterator[EmulatedFabric]:
    """Run the torus with this many hosts per switch, with emulated or plain links."""
    lab = EmulatedFabric(
        torus(hosts_per_switch, delay_us),
        ROUTING,
        name=f"bench-{secrets.token_hex(2)}",
        links="emulated" if links == "emulated" else "plain",
        openflow_port=0,
        rest_port=0,
        static_arp=True,
        controller_settings={"discovery": "none"},
    )
    with lab:
        yield lab


def emulated(hosts_per_switch: int, delay_us: float) -> Iterator[Measurement]:
    """Raise the link rate until the fabric does not keep up in two measurements."""
    failures = 0
    with running(hosts_per_switch, "emulated", delay_us) as lab:
        for rate_mbps in RATES_MBPS:
            try:
                measurement = measure(lab, rate_mbps, None)
            except EmulationError as error:  # too busy with frames to answer
                click.echo(f"emulated, {rate_mbps:g} Mbit/s links: {error}", err=True)
                return
            yield measurement
            failures += not measurement.full
            if failures == 2:
                return


def plain(hosts_per_switch: int, delay_us: float, best_mbps: float) -> Iterator[Measurement]:
    """Offer plain links the best rate of the emulated fabric, then more until they lose frames."""
    share = fair_share_mbps(torus(hosts_per_switch), best_mbps)
    with running(hosts_per_switch, "plain", delay_us) as lab:
        for step in PLAIN_STEPS:
            measurement = measure(lab, 0.0, share * step)
            yield measurement
            if not measurement.good:
                return


def summary(measurements: list[Measurement]) -> dict[str, object]:
    """Return, for each number of hosts, the best valid measurement of both kinds of links."""
    best: dict[str, object] = {}
    for hosts in sorted({one.hosts for one in measurements}):
        for links in ("emulated", "plain"):
            every = [one for one in measurements if (one.hosts, one.links) == (hosts, links)]
            good = [one for one in every if one.good]
            if good:
                top = max(good, key=lambda one: one.hops_per_s)
                best[f"{links}_{hosts}_hops_per_s"] = top.hops_per_s
                if links == "emulated":
                    best[f"emulated_{hosts}_highest_rate_mbps"] = max(o.rate_mbps for o in good)
            if every:
                most = max(one.hops_per_s for one in every)
                best[f"{links}_{hosts}_most_hops_per_s"] = most
        ours, theirs = (best.get(f"{links}_{hosts}_hops_per_s") for links in ("emulated", "plain"))
        if isinstance(ours, int) and isinstance(theirs, int):
            best[f"emulated_to_plain_{hosts}"] = round(ours / theirs, 3)
    return best


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table of all measurements, and the best ones."""
    lines = [
        "| links | hosts | link rate | hops/s | of theory | stretch | lost | good | cores |",
        "|---" * 9 + "|",
    ]
    for row in run["rows"]:
        cells = [
            row["links"],
            str(row["hosts"]),
            f"{row['rate_mbps']:g}" if row["rate_mbps"] else "-",
            f"{row['hops_per_s']:,.0f}",
            f"{row['of_theory']:.3f}",
            "-" if row["stretch"] is None else f"{row['stretch']:.2f}",
            f"{row['lost_frames']:,}",
            "yes" if row["good"] else "no",
            ", ".join(f"{name} {cores:.2f}" for name, cores in sorted(row["cpu"].items())),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    note = f"Good: within {CLOSE_ENOUGH:.0%} of theory (plain: of the offered load), in real time."
    best = [f"- {name.replace('_', ' ')}: {value:,}" for name, value in run["summary"].items()]
    here = machine_line({**run, "rows": ()})  # `cpu` of a row is not its processor
    return [*lines, "", note, "", *best, "", here]


@benchmark(table_of)
@click.option("--hosts", type=click.Choice(["16", "64", "both"]), default="both", show_default=True)
@click.option(
    "--delay-us",
    type=Number(0, 100_000),
    default=DELAY_US,
    show_default=True,
    help="One-way delay of every emulated link, which covers the time in Open vSwitch.",
)
def main(run: Run, hosts: str, delay_us: float) -> None:
    """Compare the emulated fabric with plain links on the same Open vSwitch.

    Both carry the same traffic. The rate of emulated links is raised until the goodput differs
    from theory by more than 1 %. A rate is good if virtual time also kept up with real time.
    Plain links have no rate limit; they are offered the best rate of the emulated links, then more.

    Example: sudo .venv/bin/python -m bench.capacity --hosts 16
    """
    require_fabrics()
    measurements: list[Measurement] = []

    for each in (1, 4) if hosts == "both" else (int(hosts) // 16,):
        good = [RATES_MBPS[0]]
        for one in emulated(each, delay_us):
            run.add(one.as_json())
            measurements.append(one)
            good += [one.rate_mbps] * one.good
        for one in plain(each, delay_us, max(good)):
            run.add(one.as_json())
            measurements.append(one)
    run.more(delay_us=delay_us, summary=summary(measurements))


if __name__ == "__main__":
    run_benchmark(main)
