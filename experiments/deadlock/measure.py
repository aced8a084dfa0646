"""One run on a live fabric: start the senders, watch the emulator's counters, judge."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

from experiments import iperf, open_loop
from experiments.deadlock.matrix import Case
from experiments.deadlock.row import Row
from experiments.deadlock.scenario import Scenario

ATTEMPTS = 3


def run_case(
    lab: open_loop.Lab, scenario: Scenario, case: Case, *, duration_s: float, seed: int
) -> tuple[Row, list[dict[str, Any]]]:
    """Run one case on a running fabric; returns its row, and its samples without ``row``."""
    problems = open_loop.settle(lab.daemon, "all" if case.loses else case.flow_control)
    send_s = math.ceil(duration_s + open_loop.WARM_UP_S + open_loop.SPARE_S)
    with open_loop.senders(lab, scenario, case.protocol, send_s, seed) as clients:
        readings, missing = open_loop.launch(
            lab, scenario, case.protocol, case.flow_control, clients
        )
        seen = open_loop.watch(lab, scenario, case.protocol, clients, duration_s, readings)
        texts = ["" if client.running else client.output() for client in clients]
    said = [iperf.parse_summary(text) for text in texts]
    return judge(scenario, case, seen, said, problems + missing), samples(scenario, case, seen)


def run_in_time(
    lab: open_loop.Lab, scenario: Scenario, case: Case, *, duration_s: float, seed: int
) -> tuple[Row, list[dict[str, Any]]]:
    """Run one case, again when the machine was too late for it, at most :data:`ATTEMPTS` times.

    Only lateness is a reason to try again, never what was found; the row keeps the rows
    of the attempts before it.
    """
    earlier: list[dict[str, Any]] = []
    while True:
        row, lines = run_case(lab, scenario, case, duration_s=duration_s, seed=seed)
        if not row.late or len(earlier) + 1 == ATTEMPTS:
            return replace(row, earlier_attempts=earlier), lines
        earlier.append(row.as_json())


def judge(
    scenario: Scenario,
    case: Case,
    seen: open_loop.Watch,
    said: list[iperf.Summary | None],
    problems: list[str],
) -> Row:
    """Make the row of a run from what was seen of it."""
    opened, closed, end = (seen.readings[i] for i in (seen.first, seen.last, -1))
    lateness = seen.status["lateness_us"]
    problems = problems + seen.problems
    late = not seen.status["valid"]
    if late:
        limit = lateness.get("limit")
        problems.append(f"lateness p99 is {lateness['p99']} us, over its limit of {limit} us")
    if end.drops.get("unforwarded"):
        problems.append(f"the switches lost {end.drops['unforwarded']} frames themselves")
    lost = [summary.lost for summary in said if summary is not None and summary.lost is not None]
    shares = scenario.theory_mbps(case.protocol)
    frozen_after_s = None
    if seen.deadlock is not None:
        frozen_after_s = round((seen.deadlock["since_us"] - seen.readings[0].at_us) / 1e6, 3)
    return Row(
        routes=case.routes,
        flow_control=case.flow_control,
        protocol=case.protocol,
        repeat=case.repeat,
        flows=[str(flow) for flow in scenario.flows],
        flows_mbps=[round(mbps, 4) for mbps in open_loop.goodput_mbps(opened, closed)],
        theory_mbps=round(min(shares), 4),
        theory_flows_mbps=[round(share, 4) for share in shares],
        lost_frames=end.lost_frames,
        deadlock=seen.deadlock is not None,
        cycle=list(seen.deadlock["cycle"]) if seen.deadlock is not None else [],
        predicted_cycle=scenario.predicted_cycle(case.flow_control),
        lateness_us_p99=lateness["p99"],
        valid=not problems,
        late=late,
        window_s=round((closed.at_us - opened.at_us) / 1e6, 3),
        frozen_after_s=frozen_after_s,
        drops=dict(end.drops),
        sent_frames=end.sent_frames,
        delivered_frames=end.all_delivered_frames,
        iperf3_flows_mbps=[round(s.goodput_mbps, 4) if s is not None else None for s in said],
        iperf3_lost=sum(lost) if len(lost) == len(said) else None,
        problems=problems,
    )


def samples(scenario: Scenario, case: Case, seen: open_loop.Watch) -> list[dict[str, Any]]:
    """Return the timeline of a run: a line for each flow at each reading but the first."""
    zero = seen.readings[0]
    lines = []
    for here, (before, after) in enumerate(pairwise(seen.readings), 1):
        for index, mbps in enumerate(open_loop.goodput_mbps(before, after)):
            lines.append(
                {
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
