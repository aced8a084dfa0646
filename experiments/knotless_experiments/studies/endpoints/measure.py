"""One case: with real frames on a running fabric, or simulated."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from knotless.base.counting import counted
from knotless.base.model_limits import PRIORITIES
from knotless.emulation import waiting
from knotless.emulation.interface_names import host_interface
from knotless.routing.graphs.dependencies import find_cycle
from knotless.simulation import simulate
from knotless.simulation.channels import ChannelTable, channel_table
from knotless.simulation.message_classes import for_simulator
from knotless.verification.endpoint_waits import EndpointWaits
from knotless_experiments.framework.cycles import from_first
from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.framework.routed import Measured, in_simulation, with_validity
from knotless_experiments.messages.exchange import Messenger
from knotless_experiments.studies.endpoints.cases import Case
from knotless_experiments.studies.endpoints.columns import COLUMNS
from knotless_experiments.workloads import open_loop

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

STILL_S = 1.0
"""A fabric in which nothing moves for so long, with frames in it, is frozen: many times as long as
a frame takes from host to host."""
ALL_THE_TIME = 0.99
"""A channel that was paused for so much of a time, which is known to within a look."""


@dataclass(frozen=True)
class Look:
    """The emulator's counters at a moment of virtual time; ``paused_us`` by channel."""

    at_us: int
    moved_frames: int
    in_network: int
    paused_us: Mapping[str, int]


def look(daemon: waiting.Daemon) -> Look:
    """Look at a running fabric."""
    in_network = int(daemon.status()["frames_in_network"])
    counters = daemon.counters()
    channels = counters["channels"]
    return Look(
        int(counters["now_us"]),
        sum(int(one["tx_frames"]) + int(one["rx_frames"]) for one in channels),
        in_network,
        # 802.3x stops all priorities of a link, and each of them counts.
        {
            f"{one['channel']}/{number}": int(priority["paused_us"])
            for one in channels
            for number, priority in enumerate(one["priorities"])
        },
    )


def still_since(looks: Sequence[Look]) -> Look | None:
    """Return the first look after which nothing moved, if the fabric is frozen; else None."""
    last = looks[-1]
    first = next(one for one in looks if one.moved_frames == last.moved_frames)
    is_still = last.at_us - first.at_us >= 1e6 * STILL_S and last.in_network > 0
    return first if is_still else None


def begun_us(looks: Sequence[Look]) -> int:
    """Return when the last look was before anything moved."""
    return max(one.at_us for one in looks if one.moved_frames == looks[0].moved_frames)


def frozen_cycle(waits: EndpointWaits, first: Look, last: Look) -> list[str]:
    """Return a cycle of waits between channels that were paused from one look to another."""
    least_us = ALL_THE_TIME * (last.at_us - first.at_us)
    names = {int(node): waits.name_of(int(node)) for node in np.unique(waits.edges)}
    paused = [
        node
        for node, name in names.items()
        if last.paused_us.get(name, 0) - first.paused_us.get(name, 0) >= least_us
    ]
    among = waits.edges[np.isin(waits.edges, paused).all(axis=1)]
    return from_first([names[node] for node in find_cycle(among)])


def emulated(lab: EmulatedFabric, case: Case, duration_s: float) -> Measured:
    """Let hosts send requests, and what these require, for this time, and look at what moves."""
    daemon, control = lab.daemon, case.routed.plan.flow_control
    waits = EndpointWaits(case.scenario.forwarding, case.endpoints, control)
    table = channel_table(lab.fabric, case.scenario.switching)
    problems = open_loop.settle(daemon, control)
    looks = [look(daemon)]
    # If this is interrupted, the messenger ends first, so that nobody waits for its answer.
    with ThreadPoolExecutor(1) as pool, Messenger(lab) as messenger:
        request = _request(lab, case, waits, table)
        running = pool.submit(messenger.answering, duration_s, **request)
        while not running.done():
            time.sleep(waiting.LOOK_EVERY_S)
            looks.append(look(daemon))
        answer, status = running.result(), daemon.status()
        problems += messenger.problems(status["stretch"] or 1.0)
    lost = int(daemon.counters()["lost_frames"]) + int(answer["refused_frames"])
    since = still_since(looks)
    cycle = [] if since is None else frozen_cycle(waits, since, looks[-1])
    problems += _problems(answer, lost, is_still=since is not None, cycle=cycle)
    row = COLUMNS.row(
        on=EMULATION,
        **_head(case),
        window_s=duration_s,
        requests=answer["taken"],
        deadlock=since is not None,
        frozen_after_ms=None if since is None else (since.at_us - begun_us(looks)) / 1e3,
        cycle=cycle,
        buffer_peak_bytes=max(answer["peaks"]),
        buffer_bytes=_room_bytes(case, table),
        lost_frames=lost,
    )
    return with_validity(row, status, problems), []


def simulated(case: Case, duration_s: float, seed: int) -> Measured:
    """Simulate the same for the same time."""
    scenario = case.scenario.changed(duration_us=1e6 * duration_s, seed=seed)
    result = simulate(scenario)
    deadlock = result.report.deadlock
    row = COLUMNS.row(
        on=SIMULATION,
        **_head(case),
        window_s=duration_s,
        requests=result.report.flow_packets.tolist(),
        deadlock=deadlock is not None,
        frozen_after_ms=None if deadlock is None else deadlock.since_ps / 1e9,
        cycle=from_first(result.knot),
        buffer_peak_bytes=None,
        buffer_bytes=_room_bytes(case, result.channels),
        lost_frames=result.lost_frames,
        result_sha256=result.result_sha256,
    )
    return in_simulation(row), []


def _head(case: Case) -> dict[str, Any]:
    host = case.routed.fabric.hosts[0]
    return {
        "fabric": case.routed.name,
        "endpoints": case.endpoints.name,
        "repeat": case.repeat,
        "flow_control": case.routed.plan.flow_control,
        "rate_mbps": host.rate_mbps,
        "delay_us": host.delay_us,
        "safe": case.verdict.safe,
        "reserves": case.verdict.reserve_lines,
        "flows": [f"{source} -> {to}" for source, to in case.flows],
    }


def _room_bytes(case: Case, table: ChannelTable) -> int:
    """Return the bytes of a receive buffer, which are the same at all hosts."""
    host = case.routed.fabric.hosts[0]
    place = table.place[f"{host.switch}:{host.port}"]
    return int(table.xoff_bytes[place] + table.headroom_bytes[place])


def _request(
    lab: EmulatedFabric, case: Case, waits: EndpointWaits, table: ChannelTable
) -> dict[str, Any]:
    """Return what the process that sends for all hosts is asked for."""
    from knotless.cli.probes.pause import (  # loads Scapy
        MOST_QUANTA,
        QUANTUM_BITS,
        pause_frame,
        pfc_frame,
    )

    fabric, model = lab.fabric, case.endpoints
    by_priority = case.routed.plan.flow_control.host_links.by_priority
    names = sorted({name for flow in case.flows for name in flow})
    hosts = []
    for name in names:
        host = fabric.hosts[fabric.host_index[name]]
        place = table.place[f"{host.switch}:{host.port}"]
        frames = (
            pfc_frame(host, quanta, range(PRIORITIES)) if by_priority else pause_frame(host, quanta)
            for quanta in (MOST_QUANTA, 0)
        )
        pause, resume = (bytes(frame).hex() for frame in frames)
        hosts.append(
            {
                "namespace": f"/run/netns/{lab.names.host_namespace(name)}",
                "interface": host_interface(fabric, name),
                "mac": host.mac,
                "pause": pause,
                "resume": resume,
                "renew_s": MOST_QUANTA * QUANTUM_BITS / (host.rate_mbps * 1e6) / 2,
                "xoff_bytes": int(table.xoff_bytes[place]),
                "xon_bytes": int(table.xon_bytes[place]),
            }
        )
    return {
        "hosts": hosts,
        "classes": [one[:3] for one in for_simulator(waits)],
        "begun": [n for n, name in enumerate(model.classes) if name not in model.required],
        "flows": [(names.index(source), names.index(to)) for source, to in case.flows],
    }


def _problems(
    answer: Mapping[str, Any], lost: int, *, is_still: bool, cycle: Sequence[str]
) -> Iterator[str]:
    if lost:
        yield f"{counted(lost, 'frames')} lost"
    if not all(answer["taken"]):
        yield "of a flow no request was taken"
    if is_still and not cycle:
        yield "nothing moved, and the channels that were paused close no cycle"
