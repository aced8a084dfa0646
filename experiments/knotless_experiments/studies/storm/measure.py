"""One storm in the simulator, with looks at what stands still."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from knotless._core.simulator import Simulation
from knotless.simulation import HostPause, Load, Result, Scenario, simulate
from knotless.simulation.pause_tree import pause_tree
from knotless.simulation.traffic import line_bytes
from knotless.simulation.units import picoseconds
from knotless.traffic.patterns.pattern import pattern_of
from knotless_experiments.framework.experiment import SIMULATION
from knotless_experiments.framework.routed import Measured, in_simulation
from knotless_experiments.studies.storm.cases import Case, pairs_of
from knotless_experiments.studies.storm.columns import COLUMNS

BEGINS_S = 0.02
"""When the host begins to pause; by then, traffic flows."""
LOOKS = 500
PACKET_BYTES = 1500
FRAMES_EXPECTED = 20
"""Frames of a flow that would arrive on average between two looks at flows. A flow of which none
has arrived stands still: with Poisson arrivals, chance does this less than once in 1e8 looks."""


@dataclass(frozen=True)
class Look:
    """Channels behind the host, and flows between other hosts, that stand still at a time."""

    at_us: float
    standing: int
    silent: int


class Watch:
    """Runs a simulation and looks at it at equal intervals."""

    def __init__(self, host: int, others: Sequence[int], end_us: float, flow_us: float) -> None:
        self._host, self._others = host, np.array(others, dtype=np.intp)
        step_us = (end_us - 1e6 * BEGINS_S) / LOOKS
        self._times_us = [1e6 * BEGINS_S + step_us * number for number in range(1, LOOKS + 1)]
        self._every = min(LOOKS, math.ceil(flow_us / step_us))
        self.looks: list[Look] = []

    def run(self, simulation: Simulation, progress: Callable[[], None]) -> None:
        """Run a simulation to its end."""
        simulation.run_to(picoseconds(1e6 * BEGINS_S))
        before, silent = simulation.report().flow_packets, 0
        for number, at_us in enumerate(self._times_us, 1):
            simulation.run_to(picoseconds(at_us))
            if number % self._every == 0:
                arrived = simulation.report().flow_packets
                silent = int((arrived == before)[self._others].sum())
                before = arrived
            standing = {channel for channel, _ in simulation.standing_behind(self._host)}
            self.looks.append(Look(at_us, len(standing), silent))
            progress()


def simulated(case: Case, *, duration_s: float, load: float, seed: int) -> Measured:
    """Have the host of a case pause its link for ever; returns the row and its looks."""
    fabric, seed = case.routed.fabric, seed + case.repeat - 1
    index = fabric.host_index[case.host]
    pairs = pairs_of(case.traffic, fabric, seed)
    others = [flow for flow, ends in enumerate(pairs) if index not in ends]
    flows_of_host = len(pairs) / len(fabric.hosts)
    line_mbps = fabric.hosts[0].rate_mbps
    frame_us = 8 * line_bytes(PACKET_BYTES, PACKET_BYTES) * flows_of_host / (line_mbps * load)
    scenario = Scenario(
        case.routed.plan,
        pattern_of(case.traffic, "flows of the storm experiment", pairs),
        Load("poisson", load),
        packet_bytes=PACKET_BYTES,
        host_pauses=(HostPause(1e6 * BEGINS_S, case.host),),
        duration_us=1e6 * (BEGINS_S + duration_s),
        warm_up_us=1e6 * BEGINS_S,
        seed=seed,
        **case.protection.settings,
    )
    end_us = 1e6 * (BEGINS_S + duration_s)
    watch = Watch(index, others, end_us, FRAMES_EXPECTED * frame_us)
    result = simulate(scenario, runner=watch.run)
    offered = len(others) * 1e6 * duration_s / frame_us
    row = _row(case, result, watch.looks, seed, offered, others)
    head = {name: row[name] for name in ("fabric", "traffic", "protection", "repeat")}
    return in_simulation(row), [
        {**head, "t_ms": _after_ms(look), "standing": look.standing, "silent": look.silent}
        for look in watch.looks
    ]


def _after_ms(look: Look) -> float:
    return round(look.at_us / 1000 - 1000 * BEGINS_S, 6)


def well_again_ms(looks: Sequence[Look]) -> float | None:
    """Return when nothing stood still from then on; None if something does at the end."""
    bad = [number for number, look in enumerate(looks) if look.standing or look.silent]
    if not bad:
        return 0.0
    return None if bad[-1] + 1 == len(looks) else _after_ms(looks[bad[-1] + 1])


def _row(
    case: Case,
    result: Result,
    looks: Sequence[Look],
    seed: int,
    offered: float,
    others: Sequence[int],
) -> dict[str, Any]:
    report, plan = result.report, case.routed.plan
    most = max(looks, key=lambda look: look.standing)
    lost, arrived = report.flow_lost, report.flow_packets
    lost_others = int(lost[others].sum())
    trees = [tree for tree in pause_tree(report, result.channels) if tree["by_host"]]
    return COLUMNS.row(
        on=SIMULATION,
        fabric=case.routed.name,
        traffic=case.traffic,
        protection=str(case.protection),
        repeat=case.repeat,
        seed=seed,
        engine=plan.engine,
        flow_control=result.scenario.switching.flow_control,
        rate_mbps=plan.fabric.hosts[0].rate_mbps,
        host=case.host,
        channels=len(result.channels.names) - 1,
        stopped_channels=most.standing,
        flows=len(others),
        stopped_flows=max(look.silent for look in looks),
        spread_ms=_after_ms(most) if most.standing else None,
        first_pauses=list(_first_pauses(trees)),
        depth=max((_depth(tree["paused"]) for tree in trees), default=0),
        well_again_ms=well_again_ms(looks),
        storms=int((report.channel_storms[0] > 0).sum()),
        lost_frames=result.lost_frames - lost_others,
        lost_others=lost_others,
        delivered_share=round(float(arrived[others].sum()) / offered, 6),
        deadlock=report.deadlock is not None,
        result_sha256=result.result_sha256,
    )


def _first_pauses(trees: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the channels of trees: since when (ms), because of which channel, and its name."""
    for tree in trees:
        waiting = [(tree["congested"], node) for node in tree["paused"]]
        for cause, node in waiting:
            since_ms = round(node["since_us"] / 1000 - 1000 * BEGINS_S, 6)
            yield f"{since_ms:g} {cause} {node['channel']}"
            waiting += [(node["channel"], child) for child in node["paused"]]


def _depth(paused: list[dict[str, Any]]) -> int:
    """Return how many channels are one behind the other at most."""
    depth, level = 0, paused
    while level:
        depth, level = depth + 1, [child for node in level for child in node["paused"]]
    return depth
