"""One run on a live fabric or in the simulator: start the senders, count, evaluate."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from knotless.base.flow_control import FlowControl
from knotless.traffic import theory
from knotless.traffic.patterns.pattern import pattern_of
from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.framework.routed import Measured, in_simulation, with_validity
from knotless_experiments.studies.deadlock.columns import COLUMNS
from knotless_experiments.studies.deadlock.matrix import Case
from knotless_experiments.studies.deadlock.scenario import Scenario, for_case
from knotless_experiments.workloads import iperf, open_loop


def emulated(lab: open_loop.Lab, case: Case, *, duration_s: float, seed: int) -> Measured:
    """Run one case on a running fabric; returns its row, and its samples without ``row``."""
    scenario = for_case(case)
    problems = open_loop.settle(lab.daemon, FlowControl.PAUSE if case.loses else case.flow_control)
    send_s = math.ceil(duration_s + open_loop.WARM_UP_S + open_loop.SPARE_S)
    with open_loop.senders(lab, scenario, case.protocol, send_s, seed) as clients:
        readings, missing = open_loop.launch(
            lab, scenario, case.protocol, case.flow_control, clients
        )
        cycle = scenario.predicted_cycle(case.protocol, case.flow_control)
        seen = open_loop.watch(
            lab,
            scenario,
            case.protocol,
            clients,
            duration_s,
            readings,
            may_deadlock=bool(cycle),
        )
        texts = ["" if client.running else client.output() for client in clients]
    summaries = [iperf.parse_summary(text) for text in texts]
    row = judge(scenario, case, seen, summaries, problems + missing)
    return row, samples(scenario, case, seen)


def judge(
    scenario: Scenario,
    case: Case,
    seen: open_loop.Watch,
    summaries: list[iperf.Summary | None],
    problems: list[str],
) -> dict[str, Any]:
    """Return the row of a run from its counters."""
    opened, closed, end = (seen.readings[i] for i in (seen.first, seen.last, -1))
    problems = problems + seen.problems
    if end.drops.get("unforwarded"):
        problems.append(f"the switches lost {end.drops['unforwarded']} frames themselves")
    lost = [
        summary.lost for summary in summaries if summary is not None and summary.lost is not None
    ]
    frozen_after_s = None
    if seen.deadlock is not None:
        frozen_after_s = round((seen.deadlock["since_us"] - seen.readings[0].at_us) / 1e6, 3)
    row = _row(
        scenario,
        case,
        EMULATION,
        flows_mbps=open_loop.goodput_mbps(opened, closed),
        cycle=list(seen.deadlock["cycle"]) if seen.deadlock is not None else [],
        lost_frames=end.lost_frames,
        deadlock=seen.deadlock is not None,
        window_s=round((closed.at_us - opened.at_us) / 1e6, 3),
        frozen_after_s=frozen_after_s,
        drops=dict(end.drops),
        sent_frames=end.sent_frames,
        delivered_frames=end.all_delivered_frames,
        iperf3_flows_mbps=[round(s.goodput_mbps, 4) if s is not None else None for s in summaries],
        iperf3_lost=sum(lost) if len(lost) == len(summaries) else None,
    )
    return with_validity(row, seen.status, problems)


def simulated(
    case: Case, *, duration_s: float, seed: int, watchdog_us: float | None = None
) -> Measured:
    """Run one case in the simulator, with hosts that always have a datagram to send.

    The window opens as on a running fabric: after the warm-up, or when nothing moves. With a
    watchdog, switches empty queues that were paused for longer, so nothing stops for ever.
    """
    from knotless.simulation import Load, Result, simulate
    from knotless.simulation import Scenario as Simulated

    scenario = for_case(case)
    index = scenario.fabric.host_index
    pairs = [(index[a], index[b]) for a, b in scenario.pairs]
    (packet_bytes,) = theory.message_packets(theory.UDP_PAYLOAD_BYTES)
    switches = scenario.routed.switch_settings
    watched = watchdog_us is not None or (switches is not None and switches.has_watchdog)

    def run(warm_up_s: float, window_s: float) -> Result:
        return simulate(
            Simulated(
                scenario.plan,
                pattern_of(case.pattern, "transfers of the deadlock experiment", pairs),
                Load("saturate", message_bytes=packet_bytes),
                flow_control=case.flow_control,
                packet_bytes=theory.MTU_BYTES,
                watchdog_us=watchdog_us,
                watchdog_action="drop-egress",
                switch_settings=switches,
                warm_up_us=1e6 * warm_up_s,
                duration_us=1e6 * (warm_up_s + window_s),
                seed=seed,
            )
        )

    shorter = open_loop.pace(scenario.fabric.hosts[0].rate_mbps)
    warm_up_s = open_loop.WARM_UP_S * shorter
    result = run(warm_up_s, duration_s)
    since_s = result.report.deadlock.since_ps / 1e12 if result.report.deadlock else None
    if not watched and since_s is not None and since_s > warm_up_s:
        result = run(since_s, open_loop.FROZEN_WINDOW_S * shorter)
    delivered = int(result.report.flow_packets.sum())
    payload = theory.UDP_PAYLOAD_BYTES / theory.MTU_BYTES
    row = _row(
        scenario,
        case,
        SIMULATION,
        flows_mbps=[float(mbps) * payload for mbps in result.flows_mbps],
        cycle=result.knot,
        lost_frames=result.lost_frames,
        deadlock=bool(result.knot),
        window_s=result.report.measured_ps / 1e12,
        frozen_after_s=None if since_s is None else round(since_s, 3),
        drops={},
        sent_frames=delivered + result.lost_frames,
        delivered_frames=delivered,
        iperf3_flows_mbps=[],
        iperf3_lost=None,
        result_sha256=result.result_sha256,
    )
    return in_simulation(row), []


def _row(
    scenario: Scenario,
    case: Case,
    on: str,
    *,
    flows_mbps: list[float],
    cycle: list[str],
    lost_frames: int,
    deadlock: bool,
    **counted: Any,
) -> dict[str, Any]:
    shares = scenario.theory_mbps(case.protocol)
    return COLUMNS.row(
        on=on,
        pattern=case.pattern,
        tagging=case.tagging,
        routes=case.routes,
        flow_control=case.flow_control,
        protocol=case.protocol,
        rate_mbps=scenario.fabric.hosts[0].rate_mbps,
        repeat=case.repeat,
        flows=[str(flow) for flow in scenario.flows],
        flows_mbps=[round(mbps, 4) for mbps in flows_mbps],
        theory_mbps=round(min(shares), 4),
        theory_flows_mbps=[round(share, 4) for share in shares],
        lost_frames=lost_frames,
        deadlock=deadlock,
        cycle=cycle,
        predicted_cycle=scenario.predicted_cycle(case.protocol, case.flow_control),
        as_predicted=scenario.as_predicted(cycle, case.protocol, case.flow_control),
        **counted,
    )


def samples(scenario: Scenario, case: Case, seen: open_loop.Watch) -> list[dict[str, Any]]:
    """Return the timeline of a run: a sample per flow and reading, except the first reading."""
    zero = seen.readings[0]
    lines = []
    for here, (before, after) in enumerate(pairwise(seen.readings), 1):
        for index, mbps in enumerate(open_loop.goodput_mbps(before, after)):
            lines.append(
                {
                    "pattern": case.pattern,
                    "tagging": case.tagging,
                    "routes": case.routes,
                    "flow_control": case.flow_control,
                    "protocol": case.protocol,
                    "repeat": case.repeat,
                    "t_s": (after.at_us - zero.at_us) / 1e6,
                    "flow": str(scenario.flows[index]),
                    "goodput_mbps": mbps,
                    "delivered_frames": after.delivered_frames[index],
                    "lost_frames": after.lost_frames,
                    "in_window": seen.first < here <= seen.last,
                }
            )
    return lines
