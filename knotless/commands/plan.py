"""``knotless plan``: what an engine makes of a fabric."""

from __future__ import annotations

import json

import click

from knotless.commands._options import (
    json_option,
    print_json,
    print_table,
    routing_options,
    write_text,
)
from routing.plan import make_plan
from routing.planfile import plan_to_json
from topologies import load


@click.command(name="plan")
@click.argument("spec")
@routing_options
@click.option("--out", metavar="F.json", help="Write the plan with every path to this file.")
@json_option
def command(
    spec: str,
    engine: str,
    vcs: int | None,
    select: str,
    tagging: str,
    root: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Plan the routes of SPEC and print what they cost and whether they can deadlock.

    Example: knotless plan torus,4,4 --engine dor --vcs 1 --select low-port
    """
    plan = make_plan(load(spec), engine, vcs=vcs, select=select, tagging=tagging, root=root)
    summary = plan.summary()
    if out is not None:
        write_text(out, json.dumps(plan_to_json(plan, summary)) + "\n")
    if as_json:
        print_json(summary)
    else:
        print_table(f"{engine} on {plan.fabric.name}", summary)
