"""Measuring one all-to-all: real datagrams, simulated packets, or path loads only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from knotless.base.flow_control import FlowControl
from knotless.topologies.fabric import Fabric
from knotless.traffic import theory
from knotless.traffic.contention import Lines, contention
from knotless.traffic.patterns.pattern import Flows, Pattern
from knotless_experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from knotless_experiments.framework.routed import Measured, in_simulation, with_validity
from knotless_experiments.messages.exchange import Messenger
from knotless_experiments.studies.all_to_all.cases import Case
from knotless_experiments.studies.all_to_all.columns import COLUMNS
from knotless_experiments.workloads import open_loop

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

WARM_UP_DATAGRAMS = 2
SPARE = 6.0
"""Time limit of an exchange, as a multiple of its time without contention."""


def emulated(lab: EmulatedFabric, case: Case, *, datagrams: int) -> Measured:
    """Run a case on a running fabric; a phase starts when the previous one is delivered."""
    phases = case.names()
    problems = open_loop.settle(lab.daemon, FlowControl.PAUSE)
    line_mbps = _line_mbps(case)
    each_s = datagrams * theory.UDP_PAYLOAD_BYTES * 8 / line_mbps / 1e6
    limit_s = 5.0 + SPARE * len(phases) * each_s
    with Messenger(lab) as messenger:
        size = theory.UDP_PAYLOAD_BYTES
        # Open vSwitch is slow with the first frame of each flow, which is not to be measured.
        messenger.phases(phases, datagrams=WARM_UP_DATAGRAMS, datagram_bytes=size, limit_s=limit_s)
        problems += open_loop.settle(lab.daemon, FlowControl.PAUSE)
        seconds = messenger.phases(
            phases, datagrams=datagrams, datagram_bytes=size, limit_s=limit_s
        )
        status = lab.daemon.status()
        problems += messenger.problems(status["stretch"])
    counters = lab.daemon.counters()
    if len(seconds) < len(phases):
        problems.append(f"phase {len(seconds)} was not finished within {limit_s:.0f} s")
    row = _row(
        case,
        EMULATION,
        datagrams=datagrams,
        seconds=sum(seconds),
        lost_frames=int(counters["lost_frames"]),
    )
    head = COLUMNS.head(row)
    samples = [{**head, "phase": phase, "seconds": time_s} for phase, time_s in enumerate(seconds)]
    return with_validity(row, status, problems), samples


def simulated(case: Case, *, datagrams: int, seed: int) -> Measured:
    """Run a case in the simulator, with the same phases as on a running fabric."""
    from knotless.simulation import Load, Scenario, simulate

    def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
        del fabric, seed
        yield from case.flows()

    (packet_bytes,) = theory.message_packets(theory.UDP_PAYLOAD_BYTES)
    result = simulate(
        Scenario(
            case.routed.plan,
            Pattern(case.schedule, "all to all", make, in_phases=True),
            Load(message_bytes=datagrams * packet_bytes),
            packet_bytes=theory.MTU_BYTES,
            seed=seed,
        )
    )
    left = result.report.messages_under_way
    row = _row(
        case,
        SIMULATION,
        datagrams=datagrams,
        seconds=None if left else result.report.last_complete_ps / 1e12,
        lost_frames=result.lost_frames,
        result_sha256=result.result_sha256,
    )
    problems = [f"{left} messages have not arrived: {result.verdict}"] if left else []
    return in_simulation(row, problems), []


def analysed(case: Case) -> Measured:
    """Count the flows on each channel in each phase."""
    return in_simulation(_row(case, ANALYSIS)), []


def _line_mbps(case: Case) -> float:
    """Return the goodput of a host's line without sharing."""
    rate_mbps = case.routed.fabric.hosts[0].rate_mbps
    return rate_mbps / theory.load_per_payload("udp", tagged=True)


def _row(
    case: Case,
    on: str,
    *,
    datagrams: int | None = None,
    seconds: float | None = None,
    lost_frames: int | None = None,
    result_sha256: str | None = None,
) -> dict[str, Any]:
    shared = contention(Lines(case.routed.plan), case.flows())
    hosts = len(case.phases.hosts)
    mbps: dict[str, Any] = {"mbps": None, "of_line": None}
    if seconds and datagrams is not None:
        sent = 8e-6 * datagrams * theory.UDP_PAYLOAD_BYTES * (hosts - 1) / seconds
        mbps = {"mbps": round(sent, 4), "of_line": round(sent / _line_mbps(case), 4)}
    return COLUMNS.row(
        on=on,
        configuration=case.configuration.name,
        share=case.configuration.share,
        fabric=case.routed.name,
        schedule=case.schedule,
        hosts=hosts,
        phases=hosts,
        repeat=case.repeat,
        throughput_ratio=round(shared.throughput_ratio, 6),
        max_channel_load=int(shared.max_channel_load),
        datagrams=datagrams,
        rate_mbps=case.routed.fabric.hosts[0].rate_mbps,
        **mbps,
        seconds=None if seconds is None else round(seconds, 6),
        lost_frames=lost_frames,
        result_sha256=result_sha256,
    )
