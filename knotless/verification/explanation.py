"""Sentences on what an engine did with a fabric and why (``knotless plan --explain``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.flow_control import AUTO
from knotless.routing.engine import engine_named
from knotless.routing.graphs.dependencies import cycle_names, waiting
from knotless.routing.plan import Plan
from knotless.routing.request import PlanRequest
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.dependencies import edges_of, longest_chain, removal_order, waits_of
from knotless.verification.verdict_parts import BUBBLE

_SHARED = {
    "default": "two sources share a VLAN if, at every switch, their paths to the same destination"
    " use the same next hop",
    "tree": "two sources share a VLAN if, in addition, the links of the VLAN form no loop, so that"
    " ordinary switches can use it",
}


def explain(checked: CheckedPlan, requested: PlanRequest) -> Mapping[str, str]:
    """Return sentences about a plan by topic, in the order in which to read them.

    ``requested`` is the request of the user, in which the engine may be ``auto``.
    """
    plan = checked.plan
    engine = engine_named(plan.engine)
    topics = {
        "engine": _choice(plan, requested),
        "rule": engine.rule,
        "paths": _paths(checked),
        "virtual channels": _virtual_channels(plan, requested),
        "VLANs": f"{plan.vlan_count} in use: {_sharing(plan)}.",
        "argument": engine.proof,
        "proof": _proof(checked),
    }
    return {topic: text for topic, text in topics.items() if text}


def _choice(plan: Plan, requested: PlanRequest) -> str:
    summary = engine_named(plan.engine).summary
    if requested.engine != AUTO_ENGINE:
        return f"{plan.engine}, as requested: {summary}."
    family = plan.fabric.family
    owner = f"the family {family.name}" if family else "a fabric that belongs to no family"
    return f"{plan.engine}, the default of {owner}: {summary}."


def _sharing(plan: Plan) -> str:
    """Return what each VLAN is for."""
    return plan.choice.shared_vlans or _SHARED[plan.request.vlans]


def _paths(checked: CheckedPlan) -> str:
    verdict = checked.verdict
    length = f"{verdict.mean_switches:.2f} switches on average, {verdict.max_switches} at most"
    if checked.is_minimal:
        return f"All are shortest paths: {length}."
    more = 100 * (checked.hops_over_shortest - 1)
    return f"Not all are shortest paths ({length}); together they are {more:.1f} % longer."


def _virtual_channels(plan: Plan, requested: PlanRequest) -> str:
    allowed = "as many as the engine needs"
    if requested.vcs is not None:
        allowed = f"{requested.vcs} allowed"
    used = f"{plan.vcs} in use ({allowed})"
    control = plan.flow_control.description
    if requested.flow_control != AUTO:
        reason = f"the verdict is for {control}, as requested"
    elif plan.vcs > 1:
        reason = f"{control} is needed, because only it pauses each priority by itself"
    else:
        reason = f"{control} is enough for one"
    joint = ""
    if plan.vcs > 1 and plan.flow_control.switch_links.by_channel:
        joint = " PAUSE stops all priorities of a link together, so they do not separate packets."
    return f"{used}; {reason}.{joint}"


def _proof(checked: CheckedPlan) -> str:
    """Return what the check of the forwarding state found, with witnesses of a cycle."""
    verdict, state = checked.verdict, checked.state
    edges = np.unique(waiting(edges_of(state), verdict.flow_control), axis=0)
    followed = f"The check followed the packets of {verdict.pairs} pairs of hosts and found"
    if not len(edges):
        return f"{followed} no channel that waits for another; the plan {verdict.text}."
    summary = (
        f"{followed} {len(edges)} dependencies between {len(np.unique(edges))} virtual channels"
    )
    if verdict.acyclic:
        chain = longest_chain(edges)
        return (
            f"{summary}. They form no cycle: at most {chain} virtual channels wait for each other"
            f" in a row, and the last one can always send. The plan {verdict.text}."
        )
    if verdict.theorem == BUBBLE:
        return (
            f"{summary}. They form cycles, but all of these are rings, and a frame enters one only"
            f" if room is left for another. The plan {verdict.text}."
        )
    if verdict.safe:
        _, single, waits = waits_of(state, verdict.flow_control)
        order = cycle_names(state.channels, removal_order(single, waits))
        first, last = " then ".join(order[:3]), order[-1]
        return (
            f"{summary}. They form cycles, but packets wait for the first free of several virtual"
            f" channels, and no set of these can block itself: the {len(order)} that packets hold"
            f" can be emptied in an order, first {first}, last {last}. The plan {verdict.text}."
        )
    steps = "; ".join(witness.text for witness in verdict.witnesses)
    form = "form a cycle" if verdict.blocked == verdict.cycle else "can block each other"
    return f"{summary}. {len(verdict.blocked)} of them {form}: {steps}. The plan {verdict.text}."
