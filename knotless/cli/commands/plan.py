"""``knotless plan``: the figures of an engine's plan for a fabric."""

from __future__ import annotations

import json

import click

from knotless.base.errors import PlanError
from knotless.base.files import write_whole
from knotless.base.switch_settings import SwitchFile
from knotless.cli.answer import print_answer
from knotless.cli.commands._comparison import compared, comparison_answer
from knotless.cli.commands._freeze import freeze_of, freeze_options, refuse_trace_alone
from knotless.cli.commands._plan_answer import plan_answer
from knotless.cli.commands._plan_options import plan_options, without_option
from knotless.cli.commands._switch_settings import judged_switch_options
from knotless.cli.options import (
    details_option,
    fabric_of,
    json_option,
    print_json,
    spec_argument,
)
from knotless.routing.plan import make_plan
from knotless.routing.plan_json import plan_to_json
from knotless.routing.repair import repair
from knotless.routing.request import PlanRequest
from knotless.topologies.failures import Failures
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.comparison import ALL
from knotless.verification.explanation import explain


@click.command(name="plan")
@spec_argument
@plan_options()
@without_option
@judged_switch_options
@click.option("--out", metavar="F.json", help="Write the plan with every path to this file.")
@click.option("--compare", "comparing", is_flag=True, help="Compare engines: all, or a,b,c.")
@freeze_options
@click.option("--explain", "explaining", is_flag=True, help="Say what the engine did, and why.")
@details_option
@json_option
def command(
    spec: str,
    request: PlanRequest,
    without: tuple[str, ...],
    switch_settings: SwitchFile | None,
    packet_bytes: int,
    out: str | None,
    comparing: bool,
    freezing: bool,
    write_trace: str | None,
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
    """
    refuse_trace_alone(write_trace, freezing=freezing)
    of_single_paths = {
        "--compare": comparing,
        "--explain": explaining,
    }
    for option, is_given in of_single_paths.items():
        if is_given and request.multipath != "none":
            raise PlanError(f"{option} is for plans with one path for each pair; omit it")
    of_one_plan = {
        "--out writes": out is not None,
        "--without repairs": bool(without),
        "--explain is about": explaining,
        "--switch is about": switch_settings is not None,
        "--freeze is about": freezing,
    }
    if comparing:
        for option, is_given in of_one_plan.items():
            if is_given:
                raise PlanError(f"{option} one plan; omit it with --compare")
        fabric = fabric_of(spec)
        rows = compared(fabric, request, quiet=as_json)
        if as_json:
            print_json({"engines": [row.as_json() for row in rows]})
        else:
            comparison = comparison_answer(fabric, rows, request.engine, details=details)
            print_answer(comparison, details=details)
        return 0
    if request.engine == ALL:
        raise PlanError("--engine all needs --compare")
    fabric = fabric_of(spec)
    failures = Failures.from_names(fabric, without)
    plan = make_plan(fabric, request)
    if freezing and not plan.choice.has_rules:
        raise PlanError(f"--freeze: what {plan.multipath} chooses depends on time; omit it")
    figures: dict[str, object] = {}
    if failures:
        repaired = repair(plan, failures)
        plan, figures = repaired.plan, repaired.summary()
    checked = CheckedPlan(plan, switch_settings, packet_bytes)
    summary = checked.summary() | figures
    explanation = explain(checked, request) if explaining else {}
    found = None
    if freezing:
        hashed = request.hash_seed
        found = freeze_of(checked.state, plan.flow_control, switch_settings, write_trace, hashed)
        summary |= found.as_json()
    if out is not None:
        write_whole(out, json.dumps(plan_to_json(plan, summary)) + "\n")
    if as_json:
        print_json({**summary, "explanation": explanation} if explaining else summary)
    else:
        lines = [] if found is None else found.lines
        answer = plan_answer(spec, checked, summary, explanation=explanation, freeze=lines)
        print_answer(answer, details=details)
    return 0 if checked.verdict.safe and not checked.verdict.losses else 1
