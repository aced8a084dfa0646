"""Lab 2: a verdict, a cycle with a packet for each step, and what removes the cycle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from knotless.base.counting import counted
from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.lab_checks.lab import Lab, Work
from knotless.lab_checks.proofs import (
    Step,
    state_of_folder,
    steps_of,
    wrong_cycle,
    wrong_engine_name,
)
from knotless.verification.check import verdict_of

SPEC = "ring,5,hosts=2"
RULES = "rules"


def cycle(work: Work) -> Iterator[str]:
    """The channels in the answer form a cycle of the student's rules."""
    state = state_of_folder(work.path(RULES))
    if verdict_of(state, FlowControl.PAUSE).acyclic:
        how = "write them with the command of step 1"
        yield f"{work.shown(RULES)}: these rules have no cycle: {how}"
        return
    yield from wrong_cycle(work.answers, "cycle", state, FlowControl.PAUSE)


def packets(work: Work) -> Iterator[str]:
    """Each step of the cycle has a packet that takes it, other than the one that check prints."""
    state = state_of_folder(work.path(RULES))
    steps = steps_of(work.answers.texts("cycle"))
    given = work.answers.list("packets")
    if len(given) != len(steps):
        packets, channels = counted(len(given), "packets"), counted(len(steps), "channels")
        text = f"{packets} for {channels}; give one for each, in their order"
        yield work.answers.wrong("packets", text)
        return
    printed = [
        (witness.source, witness.destination)
        for witness in verdict_of(state, FlowControl.PAUSE).witnesses
    ]
    for number, (packet, step) in enumerate(zip(given, steps, strict=True), 1):
        pair = _hosts(packet)
        if not set(pair) <= set(state.fabric.host_index):
            problem = "must be two hosts, such as {from: h1, to: h3}, with ': ' behind both words"
        elif pair in printed:
            problem = "knotless check prints this one itself; find another"
        else:
            problem = _wrong(state, pair, step)
        if problem:
            yield work.answers.wrong(f"packets, number {number}", problem)


def _hosts(packet: Any) -> tuple[str, str]:
    """Return the two ends of a packet as the student has written them."""
    given = packet if isinstance(packet, dict) else {}
    return str(given.get("from")), str(given.get("to"))


def _wrong(state: ForwardingState, pair: tuple[str, str], step: Step) -> str:
    """Return why a packet does not take a step of the cycle; empty if it does."""
    hops = state.trace(*pair).hops
    names = [state.channels.name(h.channel, 0) for h in hops if h.channel < len(state.channels)]
    if step in pairwise(names):
        return ""
    took = " ".join(names) or "no channel between switches"
    return f"{pair[0]} to {pair[1]} takes {took}, so it does not hold {step[0]} for {step[1]}"


def without_cycle(work: Work) -> Iterator[str]:
    """Another flow control, and another engine, remove the cycle."""
    state = state_of_folder(work.path(RULES))
    key = "flow_control_without_deadlock"
    chosen = work.answers.text(key)
    try:
        verdict = verdict_of(state, chosen)
    except PlanError as problem:
        yield work.answers.wrong(key, str(problem))
        return
    if not verdict.acyclic:
        yield work.answers.wrong(key, f"{state.fabric.name} {verdict.text}")


def engine(work: Work) -> Iterator[str]:
    """Another engine removes the cycle with PAUSE on all links."""
    yield from wrong_engine_name(work.answers, "engine_without_deadlock", SPEC, FlowControl.PAUSE)


LAB = Lab(2, "read-a-proof", (cycle, packets, without_cycle, engine))
