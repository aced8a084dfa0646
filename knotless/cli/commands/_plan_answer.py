"""What people are told of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.base.printable import listed
from knotless.cli.answer import Answer, Figure, Group, Hint, Several
from knotless.cli.commands._plan_options import PLAN_OPTIONS
from knotless.cli.commands._verdict_answer import (
    deadlock_reasons,
    engine_name,
    load_and_paths,
    setting_reasons,
    verdict_headline,
)
from knotless.cli.options import given_options
from knotless.topologies.failures import hosts_by_part
from knotless.verification.checked_plan import CheckedPlan

MAX_NAMES = 10
"""Hosts that are named of each part of a fabric that has come apart."""
_HIDDEN = ("separated", "losses", "freezes", "freeze")


def plan_answer(
    spec: str,
    checked: CheckedPlan,
    summary: Mapping[str, Any],
    *,
    explanation: Mapping[str, str],
    freeze: Sequence[str],
) -> Answer:
    """Return what to say about a plan; ``freeze`` are lines about traffic that freezes it."""
    plan, verdict = checked.plan, checked.verdict
    repaired = ""
    if plan.failures:
        kind = "nothing moved" if summary["repair"] == "none" else summary["repair"]
        repaired = f", without {listed(plan.failures.names)} ({kind})"
    more = ", but lossless frames can be lost" if verdict.losses else ""
    return Answer(
        verdict_headline(
            f"{plan.fabric.name} with {engine_name(plan.engine)}{repaired}", verdict, more
        ),
        why=[
            *deadlock_reasons(verdict),
            *setting_reasons(verdict),
            Several(_separated(checked), "parts"),
            *freeze,
        ],
        figures=[*load_and_paths(verdict, summary["load_bound"]), *_figures(checked, summary)],
        remarks=[f"{topic}: {text}" for topic, text in explanation.items()],
        hints=[*_hints(spec, checked, is_frozen=bool(freeze))],
        details=[
            Group("plan", {key: value for key, value in summary.items() if key not in _HIDDEN})
        ],
    )


def _separated(checked: CheckedPlan) -> list[str]:
    parts: list[list[str]] = hosts_by_part(checked.plan.fabric, checked.plan.failures)
    return [f"reach only each other: {listed(names, MAX_NAMES)}" for names in parts[1:] and parts]


def _figures(checked: CheckedPlan, summary: Mapping[str, Any]) -> Iterator[Figure]:
    plan = checked.plan
    if plan.failures:
        yield Figure("moved", summary["moved"], "paths")
        stretch, longest = summary["mean_stretch"], summary["max_stretch"]
        yield Figure("stretch", stretch, "times the intact path", at_most=longest)
        yield Figure("cut off", summary["unreachable"], "pairs of hosts")
    elif not summary["minimal"]:
        yield Figure("stretch", checked.hops_over_shortest, "times the shortest paths")
    if plan.has_choices:
        sets, largest = summary["sets_of_next_hops"], summary["max_next_hops"]
        yield Figure("choices", sets, "sets of next hops", at_most=largest)
    if plan.vcs > 1:
        yield Figure("virtual channels", plan.vcs)
    if plan.vlan_count > 1:
        yield Figure("VLANs", plan.vlan_count)
    if "rules" in summary:
        largest = summary["rules_max_switch"]
        yield Figure("rules", summary["rules"], at_most=largest, where="on a switch")
    if "coverage" in summary:
        yield Figure("protected", summary["protected"], "cut paths", of=summary["affected"])


def _hints(spec: str, checked: CheckedPlan, *, is_frozen: bool) -> Iterator[Hint]:
    plan, given = checked.plan, given_options(*PLAN_OPTIONS)
    if plan.failures:
        yield Hint("compare with the intact fabric", ["knotless", "plan", spec, *given])
    elif checked.verdict.safe:
        if plan.choice.has_rules:
            yield Hint("write its rules", ["knotless", "flows", spec, *given, "--out", "rules"])
        pattern = ("--pattern", "uniform", "--load", "0.5")
        traffic = ["knotless", "simulate", spec, *given, *pattern]
        yield Hint("try it with traffic", traffic)
    else:
        control = given_options("flow_control")
        yield Hint("find an engine that is safe", ["knotless", "advise", spec, *control])
        if plan.choice.has_rules and not is_frozen:
            freeze = ["knotless", "plan", spec, *given, "--freeze"]
            yield Hint("find traffic that freezes it", freeze)
