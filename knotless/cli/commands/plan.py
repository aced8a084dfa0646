"""``knotless plan``: the figures of an engine's plan for a fabric."""

from __future__ import annotations

import json

import click

from knotless.base.errors import PlanError
from knotless.base.files import write_whole
from knotless.base.printable import listed
from knotless.cli.commands._comparison import compared, print_comparison
from knotless.cli.commands._options import (
    fabric_of,
    json_option,
    print_json,
    print_table,
    spec_argument,
)
from knotless.cli.commands._plan_options import plan_options, without_option
from knotless.cli.output import say
from knotless.routing.plan import make_plan, plan_to_json
from knotless.routing.repair import repair
from knotless.routing.request import PlanRequest
from knotless.topologies.failures import Failures, hosts_by_part
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.comparison import ALL
from knotless.verification.explanation import explain

MOST_NAMES = 10
"""Hosts that are named of each part of a fabric that has come apart."""


@click.command(name="plan")
@spec_argument
@plan_options()
@without_option
@click.option("--out", metavar="F.json", help="Write the plan with every path to this file.")
@click.option("--compare", "comparing", is_flag=True, help="Compare engines: all, or a,b,c.")
@click.option("--explain", "explaining", is_flag=True, help="Say what the engine did, and why.")
@json_option
def command(
    spec: str,
    request: PlanRequest,
    without: tuple[str, ...],
    out: str | None,
    comparing: bool,
    explaining: bool,
    as_json: bool,
) -> int:
    """Plan the routes of SPEC; print their figures and whether they can deadlock.

    The verdict applies to the flow control of the plan; the exit status is 1 if it can deadlock,
    also with --json, and 0 for a comparison. With --without, the plan of the intact
    fabric is repaired: only paths that used a failed part move.

    Example: knotless plan torus,4,4 --engine dor --vcs 1 --select low-port

    Example: knotless plan torus,4,4 --engine all --compare

    Example: knotless plan torus,5,5 --explain

    Example: knotless plan torus,4,4 --without s1-s2 --without s11
    """
    if comparing:
        if out is not None:
            raise PlanError("--out writes one plan; omit it with --compare")
        if without:
            raise PlanError("--without repairs one plan; omit it with --compare")
        if explaining:
            raise PlanError("--explain is about one plan; omit it with --compare")
        rows = compared(fabric_of(spec), request, quiet=as_json)
        if as_json:
            print_json({"engines": [row.as_json() for row in rows]})
        else:
            print_comparison(spec, rows)
        return 0
    if request.engine == ALL:
        raise PlanError("--engine all needs --compare")
    fabric = fabric_of(spec)
    failures = Failures.from_names(fabric, without)
    plan = make_plan(fabric, request)
    figures: dict[str, object] = {}
    if failures:
        repaired = repair(plan, failures)
        plan, figures = repaired.plan, repaired.summary()
    checked = CheckedPlan(plan)
    summary = checked.summary() | figures
    explanation = explain(checked, request) if explaining else {}
    if out is not None:
        write_whole(out, json.dumps(plan_to_json(plan, summary)) + "\n")
    if as_json:
        print_json({**summary, "explanation": explanation} if explaining else summary)
    else:
        separated: list[list[str]] = hosts_by_part(fabric, failures)
        shown = {key: value for key, value in summary.items() if key != "separated"}
        print_table(f"{plan.engine} on {fabric.name}", shown)
        if len(separated) > 1:
            for names in separated:
                say(f"reach only each other: {listed(names, MOST_NAMES)}")
        for topic, text in explanation.items():
            say(f"{topic}: {text}")
        say(checked.verdict.text)
    return 1 if checked.cycle else 0
