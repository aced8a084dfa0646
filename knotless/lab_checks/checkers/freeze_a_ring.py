"""Lab 1: a ring that freezes under PAUSE, as predicted from its plan."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.base.flow_control import FlowControl
from knotless.forwarding.from_plan import state_of_plan
from knotless.lab_checks.lab import Lab, Work
from knotless.lab_checks.proofs import steps_of, wrong_cycle, wrong_engine_name
from knotless.lab_checks.running import status_of
from knotless.routing.plan import make_plan
from knotless.topologies import load

SPEC = "ring,4"


def predicted(work: Work) -> Iterator[str]:
    """The channels in the answer form a cycle of the plan that the student started."""
    plan = make_plan(load(SPEC), "dor", vcs=1, select="low-port")
    yield from wrong_cycle(work.answers, "cycle", state_of_plan(plan), FlowControl.PAUSE)


def cure(work: Work) -> Iterator[str]:
    """The engine in the answer makes the ring safe."""
    yield from wrong_engine_name(work.answers, "safe_engine", SPEC, FlowControl.PAUSE)


def frozen(work: Work) -> Iterator[str]:
    """The running ring is deadlocked, in the cycle of the answer."""
    emulator = status_of(work, SPEC)["emulator"] or {}
    deadlock = emulator.get("deadlock")
    if deadlock is None:
        yield "the running ring is not frozen: start the four senders, wait, and type 'deadlock'"
    elif set(steps_of(deadlock["cycle"])) != set(steps_of(work.answers.texts("cycle"))):
        seen = " ".join(deadlock["cycle"])
        yield work.answers.wrong("cycle", f"the running ring is frozen in another one: {seen}")


LAB = Lab(1, "freeze-a-ring", (predicted, cure), (frozen,))
