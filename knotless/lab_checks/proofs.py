"""Questions of several checkers to the project's proofs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.directory import read_dir
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.state import ForwardingState
from knotless.lab_checks.lab import Answers, TodoError
from knotless.routing.engine import loaded_engine
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import waiting
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.dependencies import edges_of

Step = tuple[str, str]
_VIRTUAL_CHANNEL = re.compile(r"[^\s:/]+:[0-9]+/[0-7]")


def steps_of(cycle: Sequence[str]) -> list[Step]:
    """Return (held channel, channel waited for) for each channel of a cycle."""
    return list(pairwise([*cycle, *cycle[:1]]))


def dependencies(state: ForwardingState, flow_control: FlowControl) -> set[Step]:
    """Return which channel waits for which, as ``SWITCH:PORT/PRIORITY``."""
    name = state.channels.name
    edges = {(a, b) for a, b in waiting(edges_of(state), flow_control).tolist()}
    return {
        (name(*divmod(a, VCS_PER_CHANNEL)), name(*divmod(b, VCS_PER_CHANNEL))) for a, b in edges
    }


def wrong_cycle(
    answers: Answers, key: str, state: ForwardingState, flow_control: FlowControl
) -> Iterator[str]:
    """Yield a line for each step of the cycle in an answer that no packet takes."""
    cycle = answers.texts(key)
    edges = dependencies(state, flow_control)
    if len(set(cycle)) != len(cycle):
        yield answers.wrong(key, "names a channel twice; the last one leads back to the first")
        return
    for name in cycle:
        if not _VIRTUAL_CHANNEL.fullmatch(name):
            example = cycle[0].partition("/")[0]
            yield answers.wrong(
                key, f"{name[:40]} is no virtual channel: one is written {example}/0, with priority"
            )
            return
    for held, wanted in steps_of(cycle):
        if (held, wanted) not in edges:
            yield answers.wrong(
                key, f"no packet holds {held} while it waits for {wanted} (under {flow_control})"
            )


def state_of_folder(folder: Path) -> ForwardingState:
    """Return the forwarding state of a folder of rules; raises RuleError or FabricError."""
    fabric, rules = read_dir(folder)
    return state_of_rules(fabric, rules)


def wrong_verdict(verdict: Verdict, what: str) -> Iterator[str]:
    """Yield a line if not all is delivered, and one if there is a cycle."""
    if verdict.failed:
        first = verdict.problems[0] if verdict.problems else "see knotless check"
        yield f"{what}: {verdict.failed} deliveries fail; the first: {first}"
    if not verdict.acyclic:
        yield f"{what}: it {verdict.text}"


def plan_with_engine(path: Path, fabric: Fabric) -> Plan:
    """Return the plan of the engine in a student's file; TodoError says what is wrong with it."""
    try:
        return make_plan(fabric, loaded_engine(str(path)))
    except PlanError as problem:
        text = str(problem).replace(str(path.absolute()), str(path))
        raise TodoError(f"{text} (on {fabric.name})") from problem


def verdict_of_plan(plan: Plan) -> Verdict:
    """Return the verdict on a plan under its flow control."""
    return verdict_of(state_of_plan(plan), plan.flow_control)


def wrong_engine_name(
    answers: Answers, key: str, spec: str, flow_control: FlowControl
) -> Iterator[str]:
    """Yield a line if the engine in an answer is none that makes the fabric safe."""
    name = answers.text(key)
    try:
        plan = make_plan(load(spec), name, flow_control=flow_control)
    except PlanError as problem:
        yield answers.wrong(key, str(problem))
        return
    verdict = verdict_of_plan(plan)
    if not verdict.acyclic:
        yield answers.wrong(key, f"{name} on {spec} {verdict.text}")
