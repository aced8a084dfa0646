"""``knotless plan``: the figures of an engine's plan for a fabric."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from knotless.base.errors import PlanError
from knotless.base.files import write_whole
from knotless.base.printable import listed
from knotless.cli.answer import Answer, Figure, Group, Hint, Several, print_answer, written
from knotless.cli.commands._comparison import compared, comparison_answer
from knotless.cli.commands._plan_options import (
    PLAN_OPTIONS,
    ROUTES,
    SWITCHES,
    plan_options,
    without_option,
)
from knotless.cli.commands._verdict_answer import (
    deadlock_reasons,
    endpoint_reasons,
    engine_name,
    load_and_paths,
    remedy_lines,
    setting_reasons,
    verdict_headline,
)
from knotless.cli.commands._verdict_options import (
    FreezeOptions,
    SwitchOptions,
    endpoints_option,
    freeze_options,
    judged_switch_options,
    refuse_with_endpoints,
)
from knotless.cli.help import Command, under
from knotless.cli.options import (
    details_option,
    fabric_of,
    given_options,
    json_option,
    print_json,
    spec_argument,
)
from knotless.cli.progress import Bar
from knotless.routing.plan import make_plan
from knotless.routing.plan_json import plan_to_json
from knotless.routing.repair import repair
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures, hosts_by_part
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.comparison import ALL
from knotless.verification.explanation import explain
from knotless.verification.verdict_parts import BUBBLE

if TYPE_CHECKING:
    from knotless.traffic.endpoints import EndpointModel
    from knotless.verification.remedies import Remedy

MAX_NAMES = 10
"""Hosts that are named of each part of a fabric that has come apart."""
_HIDDEN = {
    *("separated", "losses", "freezes", "freeze", "reserves", "witnesses", "remedies", "notes"),
    "assumes",
}


@click.command(name="plan", cls=Command)
@spec_argument
@plan_options()
@under(ROUTES, without_option)
@under(SWITCHES, judged_switch_options, ["switch_settings"])
@under(SWITCHES, endpoints_option, ["endpoints"])
@click.option("--out", metavar="F.json", help="Write the plan with every path to this file.")
@click.option("--compare", "comparing", is_flag=True, help="Compare engines: all, or a,b,c.")
@under(SWITCHES, freeze_options, ["freezing"])
@click.option("--explain", "explaining", is_flag=True, help="Say what the engine did, and why.")
@details_option
@json_option
def command(
    spec: str,
    request: PlanRequest,
    without: tuple[str, ...],
    switches: SwitchOptions,
    endpoints: EndpointModel | None,
    out: str | None,
    comparing: bool,
    freeze: FreezeOptions,
    explaining: bool,
    details: bool,
    as_json: bool,
) -> int:
    """Plan the routes of SPEC; print their figures and whether they can deadlock.

    The verdict applies to the flow control of the plan; the exit status is 1 if it can deadlock,
    also with --json, and 0 for a comparison. With --switch, the buffers of the switches are judged
    too, and the status is also 1 if lossless frames can be lost. With --without, the plan of the
    intact fabric is repaired: only paths that used a failed part move.

    Example: knotless plan torus,4,4 --engine dor --vcs 1 --select low-port

    Example: knotless plan torus,4,4 --engine all --compare

    Example: knotless plan torus,5,5 --explain

    Example: knotless plan torus,4,4 --without s1-s2 --without s11

    Example: knotless plan torus,4,4 --switch switch.yaml

    Example: knotless plan ring,4 --engine minimal --vcs 1 --freeze --write-trace freeze.csv

    Example: knotless plan fattree2,4 --multipath ecmp

    Example: knotless plan slimfly,5 --engine valiant --multipath layers --layers 6

    Example: knotless plan torus,4,4 --engine adaptive

    Example: knotless plan fattree2,4 --endpoints request-reply
    """
    _refuse_for_multipath(request, {"--compare": comparing, "--explain": explaining})
    if comparing:
        _refuse_to_compare(
            {
                "--out writes": out is not None,
                "--without repairs": bool(without),
                "--explain is about": explaining,
                "--switch is about": switches.switch_settings is not None,
                "--endpoints is about": endpoints is not None,
                "--freeze is about": freeze.freezing,
            }
        )
        _compare(fabric_of(spec), request, details=details, as_json=as_json)
        return 0
    if request.engine == ALL:
        raise PlanError("--engine all needs --compare")
    refuse_with_endpoints(endpoints, {"--switch": switches.switch_settings})
    fabric = fabric_of(spec)
    failures = Failures.from_names(fabric, without)
    settings = switches.switch_settings
    with Bar("choosing paths", 3, counted=False, transient=True, patient=True) as bar:
        plan = make_plan(fabric, request)
        if freeze.freezing and not plan.choice.has_rules:
            raise PlanError(f"--freeze: what {plan.multipath} chooses depends on time; omit it")
        figures: dict[str, object] = {}
        if failures:
            repaired = repair(plan, failures)
            plan, figures = repaired.plan, repaired.summary()
        bar.update(completed=1, description="following all packets")
        checked = CheckedPlan(plan, settings, switches.packet_bytes, endpoints)
        is_safe = checked.verdict.safe and not checked.verdict.losses
        bar.update(completed=2, description="making rules")
        summary = checked.summary() | figures
    remedies = [*_remedies(checked)]
    if endpoints is not None:
        summary["remedies"] = [remedy.as_json() for remedy in remedies]
    explanation = explain(checked, request) if explaining else {}
    control = checked.verdict.flow_control
    traffic = freeze.find(checked.state, control, settings, request.hash_seed, endpoints)
    summary |= {} if traffic is None else traffic.as_json()
    if out is not None:
        write_whole(out, json.dumps(plan_to_json(plan, summary)) + "\n")
    if as_json:
        print_json({**summary, "explanation": explanation} if explaining else summary)
    else:
        lines = [] if traffic is None else traffic.lines
        answer = _answer(spec, checked, summary, explanation=explanation, freeze=lines)
        more = remedy_lines(remedies) if endpoints is not None and not is_safe else ()
        answer = replace(answer, remarks=[*answer.remarks, *more, *written(plan=out)])
        print_answer(answer, details=details)
    return 0 if is_safe else 1


def _remedies(checked: CheckedPlan) -> Iterator[Remedy]:
    """Yield what makes an unsafe plan with end points safe; nothing of another plan."""
    if checked.endpoints is None or checked.endpoint_verdict is None or checked.verdict.safe:
        return
    from knotless.verification.endpoint_remedies import endpoint_remedies, engine_remedies

    verdict = checked.endpoint_verdict
    changes = [*endpoint_remedies(checked.state, checked.endpoints, verdict, replanned=True)]
    yield from changes or engine_remedies(checked)


def _refuse_for_multipath(request: PlanRequest, options: Mapping[str, bool]) -> None:
    """Raise PlanError if an option is given that a plan with several next hops does not take."""
    for option, is_given in options.items():
        if is_given and request.multipath != "none":
            raise PlanError(f"{option} is for plans with one path for each pair; omit it")


def _refuse_to_compare(options: Mapping[str, bool]) -> None:
    """Raise PlanError if an option is given that is about a single plan."""
    for option, is_given in options.items():
        if is_given:
            raise PlanError(f"{option} one plan; omit it with --compare")


def _compare(fabric: Fabric, request: PlanRequest, *, details: bool, as_json: bool) -> None:
    rows = compared(fabric, request, quiet=as_json)
    if as_json:
        print_json({"engines": [row.as_json() for row in rows]})
    else:
        answer = comparison_answer(fabric, rows, request.engine, details=details)
        print_answer(answer, details=details)


def _answer(
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
            *endpoint_reasons(checked.endpoint_verdict),
            *setting_reasons(verdict),
            *([f"assumed: {'; '.join(verdict.assumes)}"] if verdict.theorem == BUBBLE else []),
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
        yield Figure("protected", summary["protected"], "cut paths", whole=summary["affected"])


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
