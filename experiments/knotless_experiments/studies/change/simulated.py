"""One change in the simulator, under saturating traffic."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from knotless._core.simulator import DROP_CAUSES
from knotless.base.flow_control import FlowControl
from knotless.controller.updates.quiescence import CountedRounds
from knotless.forwarding.openflow.reader import Generation, state_to_replay
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.state import ForwardingState
from knotless.simulation import Load, Result, Scenario
from knotless.simulation.rule_changes import RuleChanges
from knotless.simulation.units import PICOSECONDS_PER_US
from knotless.traffic import theory
from knotless.traffic.patterns.pattern import pattern_of
from knotless.verification.dependencies import longest_chain
from knotless_experiments.framework.experiment import SIMULATION
from knotless_experiments.framework.routed import Measured, in_simulation
from knotless_experiments.studies.change.cases import (
    NAIVE,
    Case,
    naive_rules,
    named,
    predicted,
    proven_change,
)
from knotless_experiments.studies.change.columns import COLUMNS

WARM_UP_S = 0.2
"""Traffic fills the fabric before the change begins; up to as much again is added at random."""
READ_EVERY_S = 0.005
"""The interval at which counters are read while older packets leave."""
DRAIN_LIMIT_S = 5.0


@dataclass(frozen=True)
class Phase:
    """The rules of all switches from a moment on.

    ``rounds`` are those until the fabric is quiescent, before the next phase, as of
    :class:`knotless.controller.updates.quiescence.CountedRounds`; None: it need not wait.
    """

    rules: FabricRules
    rounds: int | None = None
    drops: bool = False
    """Frames of some pairs are dropped at admission."""


@cache
def phases_of(
    swap: str, flow_control: FlowControl, way: str, rate_mbps: float
) -> tuple[Phase, ...]:
    """Return the rules before the change, and those of each step."""
    if way == NAIVE:
        return tuple(map(Phase, naive_rules(swap, flow_control, rate_mbps)))
    change = proven_change(swap, flow_control, rate_mbps)
    phases = [Phase(change.before.rules)]
    for step in change.steps:
        rounds = longest_chain(step.proof.mixed.dependencies) if step.await_quiescence else None
        phases.append(Phase(step.rules, rounds, bool(step.dropped)))
    return tuple(phases)


@cache
def _state(swap: str, flow_control: FlowControl, way: str, rate_mbps: float) -> ForwardingState:
    phases = phases_of(swap, flow_control, way, rate_mbps)
    fabric = Case(swap, flow_control, way, rate_mbps=rate_mbps).routed.fabric
    return state_to_replay(fabric, [Generation(phase.rules) for phase in phases])


def simulated(case: Case, *, duration_s: float, spread_s: float, seed: int) -> Measured:
    """Change the rules of a simulated fabric, and watch it for ``duration_s`` afterwards.

    In each step, switches take their rules in random order within ``spread_s``, each at once.
    """
    fabric, key = case.routed.fabric, (case.swap, case.flow_control, case.way, case.rate_mbps)
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    phases = phases_of(*key)
    (packet_bytes,) = theory.message_packets(theory.UDP_PAYLOAD_BYTES)
    limit_s = 2 * WARM_UP_S + len(phases) * (spread_s + DRAIN_LIMIT_S) + duration_s
    pairs = named(case.swap).pairs(fabric)
    running = RuleChanges(
        Scenario(
            case.routed.plan,
            pattern_of(case.swap, "transfers of the change experiment", pairs),
            Load("saturate", message_bytes=packet_bytes),
            flow_control=case.flow_control,
            packet_bytes=theory.MTU_BYTES,
            duration_us=1e6 * limit_s,
            seed=seed,
            state=_state(*key),
        )
    )
    running.run_to(1e6 * WARM_UP_S * (1 + rng.random()))
    began_us, order, problems = running.now_us, list[str](), list[str]()
    dropped_us = 0.0
    dropping_since_us: float | None = None
    for number, (before, phase) in enumerate(pairwise(phases), 1):
        changed = [name for name in fabric.switch_index if before.rules[name] != phase.rules[name]]
        rng.shuffle(changed)
        times_us = sorted(running.now_us + 1e6 * spread_s * rng.random() for _ in changed)
        if phase.drops and dropping_since_us is None:
            dropping_since_us = times_us[0]
        for name, at_us in zip(changed, times_us, strict=True):
            running.run_to(at_us)
            running.hold(name, number)
        order += changed
        if dropping_since_us is not None and not phase.drops:
            dropped_us += running.now_us - dropping_since_us
            dropping_since_us = None
        if phase.rounds is not None and not _drain(running, phase):
            problems.append(f"older packets had not left {DRAIN_LIMIT_S:g} s after step {number}")
            break
    changed_us = running.now_us
    running.run_to(changed_us + 1e6 * duration_s)
    about = {"seed": seed, "order": order, "dropped_s": round(dropped_us / 1e6, 6)}
    row = _row(case, running.result(), began_us, changed_us, **about)
    return in_simulation(row, problems), []


def _drain(running: RuleChanges, phase: Phase) -> bool:
    """Wait until the packets of older rules have left.

    In rounds as the controller's, but the simulator counts frames by priority, and frames of a
    priority keep their order. The ends of a virtual channel are two ports of its own here.
    """
    assert phase.rounds is not None  # noqa: S101 - the caller's condition
    draining: CountedRounds | None = None
    end_us = running.now_us + 1e6 * DRAIN_LIMIT_S
    while running.now_us < end_us:
        queued, arrived = running.passed()
        ends = [((f"{name} out", p), (f"{name} in", p)) for name, p in queued]
        if draining is None:
            draining = CountedRounds(ends, phase.rounds, {}, keeps_order=True)
        sent = dict(
            zip((out for out, _ in ends), ((0, frames) for frames in queued.values()), strict=True)
        )
        got = dict(
            zip(
                (into for _, into in ends),
                ((frames, 0) for frames in arrived.values()),
                strict=True,
            )
        )
        if draining.see({**sent, **got}):
            return True
        running.run_to(running.now_us + 1e6 * READ_EVERY_S)
    return False


def _row(
    case: Case, result: Result, began_us: float, changed_us: float, **about: Any
) -> dict[str, Any]:
    drops = result.report.channel_drops[DROP_CAUSES.index("unforwarded")]
    place = result.channels.place
    dropped = sum(int(drops[place[host.name]]) for host in case.routed.fabric.hosts)
    deadlock = result.report.deadlock
    after_us = None if deadlock is None else deadlock.since_ps / PICOSECONDS_PER_US - began_us
    return COLUMNS.row(
        on=SIMULATION,
        fabric=case.swap,
        flow_control=case.flow_control,
        way=case.way,
        repeat=case.repeat,
        **about,
        change_s=round((changed_us - began_us) / 1e6, 6),
        deadlock=deadlock is not None,
        deadlock_after_s=None if after_us is None else round(after_us / 1e6, 6),
        cycle=result.knot,
        stopped_frames=dropped,
        lost_frames=result.lost_frames - dropped,
        delivered_frames=int(result.report.flow_packets.sum()),
        **predicted(case),
    )
