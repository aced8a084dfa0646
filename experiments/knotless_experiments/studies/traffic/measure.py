"""Measuring a case on a running fabric, or in the simulator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from knotless.topologies.fabric import Fabric
from knotless.traffic import theory
from knotless.traffic.flows import Flow, exchange_us, fair_mbps, paths_on_channels
from knotless.traffic.patterns.pattern import pattern_of
from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.framework.routed import Measured, in_simulation, with_validity
from knotless_experiments.messages.exchange import WARM_UP_MESSAGES, Messenger, warm_up_s
from knotless_experiments.studies.traffic.cases import ACKNOWLEDGED, Case
from knotless_experiments.studies.traffic.columns import COLUMNS
from knotless_experiments.workloads import open_loop

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

ENDLESS = 2**40


@dataclass(frozen=True)
class Times:
    """The times of a flow's messages, in microseconds."""

    messages: int
    mean_us: float
    p50_us: float | None
    max_us: float | None


def emulated(lab: EmulatedFabric, case: Case, *, duration_s: float, seed: int) -> Measured:
    """Run a case on a running fabric."""
    if case.part == ACKNOWLEDGED:
        return _exchanged(lab, case, duration_s)
    return _flooded(lab, case, duration_s, seed)


def _exchanged(lab: EmulatedFabric, case: Case, duration_s: float) -> Measured:
    problems = open_loop.settle(lab.daemon, case.routed.plan.flow_control)
    size = int(case.message_bytes or 0)
    slowest_us = max(exchange_us(case.routed.plan, flow, size) for flow in case.flows)
    begin_s = warm_up_s(slowest_us)
    with Messenger(lab) as messenger:
        # Open vSwitch is slow with the first frame of each flow, which is not to be measured.
        messenger.acknowledged(case.pairs, size, 0.0, begin_s)
        problems += open_loop.settle(lab.daemon, case.routed.plan.flow_control)
        by_flow = messenger.acknowledged(case.pairs, size, duration_s, begin_s)
        status = lab.daemon.status()
        problems += messenger.problems(status["stretch"])
    counters = lab.daemon.counters()
    times = []
    for times_us in by_flow:
        if times_us:
            mean_us, middle_us = sum(times_us) / len(times_us), sorted(times_us)[len(times_us) // 2]
            times.append(Times(len(times_us), mean_us, middle_us, max(times_us)))
        else:
            times.append(Times(0, math.inf, None, None))
    row = _row(
        case,
        EMULATION,
        [_goodput_mbps(case, each) for each in times],
        lost_frames=int(counters["lost_frames"]),
        deadlock=status["deadlock"] is not None,
        window_s=duration_s,
    )
    judged = with_validity(row, status, problems)
    return judged, samples(row, times)


def _goodput_mbps(case: Case, times: Times) -> float:
    """Return B = D / T."""
    return 8 * int(case.message_bytes or 0) / times.mean_us


@dataclass(frozen=True)
class _Offered:
    """A case's flows in the form that the open loop needs."""

    fabric: Fabric
    flows: Sequence[Flow]


def _flooded(lab: EmulatedFabric, case: Case, duration_s: float, seed: int) -> Measured:
    offered = _Offered(case.routed.fabric, case.flows)
    protocol: theory.Protocol = "tcp" if case.protocol == "tcp" else "udp"
    flow_control = case.routed.plan.flow_control
    problems = open_loop.settle(lab.daemon, flow_control)
    slowest_mbps = min(fair_mbps(case.routed.plan, case.flows, protocol))
    seconds = open_loop.sending_s(duration_s, protocol, slowest_mbps)
    with open_loop.senders(lab, offered, protocol, seconds, seed) as clients:
        readings, missing = open_loop.launch(lab, offered, protocol, flow_control, clients)
        seen = open_loop.watch(
            lab, offered, protocol, clients, duration_s, readings, to_the_end=False
        )
    opened, closed = seen.readings[seen.first], seen.readings[seen.last]
    goodput = open_loop.goodput_mbps(opened, closed)
    row = _row(
        case,
        EMULATION,
        goodput,
        lost_frames=closed.lost_frames,
        deadlock=seen.deadlock is not None,
        window_s=round((closed.at_us - opened.at_us) / 1e6, 3),
    )
    problems += [*missing, *seen.problems]
    judged = with_validity(row, seen.status, problems)
    return judged, samples(row, None)


def simulated(case: Case, *, duration_s: float, seed: int, cut_through: int = 0) -> Measured:
    """Run a case in the simulator; ``cut_through`` as in :class:`simulation.Scenario`."""
    from knotless.simulation import Load, Scenario, simulate

    plan, index = case.routed.plan, case.routed.fabric.host_index
    pairs = [(index[a], index[b]) for a, b in case.pairs]
    packets = theory.message_packets(case.message_bytes or theory.UDP_PAYLOAD_BYTES)
    arrivals: Literal["acknowledged", "saturate"] = (
        "acknowledged" if case.part == ACKNOWLEDGED else "saturate"
    )
    warm_up_us = WARM_UP_MESSAGES * max(
        exchange_us(plan, flow, case.message_bytes or theory.UDP_PAYLOAD_BYTES)
        for flow in case.flows
    )
    result = simulate(
        Scenario(
            plan,
            pattern_of(case.pattern, "the flows of an experiment", pairs),
            Load(arrivals, message_bytes=sum(packets), messages=ENDLESS),
            flow_control=case.routed.plan.flow_control,
            packet_bytes=theory.MTU_BYTES,
            switch_settings=case.routed.switch_settings,
            cut_through=cut_through,
            warm_up_us=warm_up_us,
            duration_us=warm_up_us + duration_s * 1e6,
            seed=seed,
        )
    )
    window_us = result.report.measured_ps / 1e6
    counts = [int(count) for count in result.report.flow_messages]
    if case.part == ACKNOWLEDGED:
        times = [Times(n, window_us / n if n else math.inf, None, None) for n in counts]
        goodput = [_goodput_mbps(case, each) for each in times]
    else:
        times = None
        payload = theory.UDP_PAYLOAD_BYTES / theory.MTU_BYTES
        goodput = [float(mbps) * payload for mbps in result.flows_mbps]
    row = _row(
        case,
        SIMULATION,
        goodput,
        lost_frames=result.lost_frames,
        deadlock=bool(result.knot),
        window_s=window_us / 1e6,
        result_sha256=result.result_sha256,
    )
    return in_simulation(row), samples(row, times)


def _row(
    case: Case,
    on: str,
    flows_mbps: Sequence[float],
    *,
    lost_frames: int,
    deadlock: bool,
    window_s: float,
    result_sha256: str | None = None,
) -> dict[str, Any]:
    plan, flows = case.routed.plan, case.flows
    if case.part == ACKNOWLEDGED:
        size = int(case.message_bytes or 0)
        shares = [8 * size / exchange_us(plan, flow, size) for flow in flows]
    else:
        shares = fair_mbps(plan, flows, "tcp" if case.protocol == "tcp" else "udp")
    mean, share = sum(flows_mbps) / len(flows), sum(shares) / len(flows)
    return COLUMNS.row(
        part=case.part,
        on=on,
        fabric=case.routed.name,
        engine=plan.engine,
        vcs=plan.vcs,
        select=case.routed.request.select,
        routes=case.routed.routes,
        pattern=case.pattern,
        protocol=case.protocol,
        message_bytes=case.message_bytes,
        rate_mbps=case.routed.fabric.hosts[0].rate_mbps,
        delay_us=case.routed.fabric.hosts[0].delay_us,
        repeat=case.repeat,
        flows=[str(flow) for flow in flows],
        flows_mbps=[round(mbps, 4) for mbps in flows_mbps],
        theory_flows_mbps=[round(mbps, 4) for mbps in shares],
        mean_mbps=round(mean, 4),
        theory_mbps=round(share, 4),
        of_theory=round(mean / share, 4),
        mean_switches=round(sum(len(flow.channels) for flow in flows) / len(flows), 3),
        max_channel_load=max(paths_on_channels(flows).values(), default=0),
        lost_frames=lost_frames,
        deadlock=deadlock,
        window_s=window_s,
        result_sha256=result_sha256,
    )


def samples(row: Mapping[str, Any], times: Sequence[Times] | None) -> list[dict[str, Any]]:
    """Return a sample for each flow of a row."""
    head = COLUMNS.head(row)
    lines = []
    for i, flow in enumerate(row["flows"]):
        line = {"flow": flow, "goodput_mbps": row["flows_mbps"][i]}
        line |= {"theory_mbps": row["theory_flows_mbps"][i]}
        line |= vars(times[i]) if times is not None else {}
        lines.append({**head, **line})
    return lines
