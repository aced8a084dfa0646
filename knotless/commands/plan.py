"""``knotless plan``: what an engine makes of a fabric."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from common.errors import PlanError
from knotless.commands._options import (
    json_option,
    print_json,
    print_table,
    shown,
    write_text,
)
from knotless.commands._plan_options import plan_options
from routing.plan import make_plan
from routing.plan_file import plan_to_json
from routing.request import PlanRequest
from topologies import load
from verification.checked_plan import CheckedPlan
from verification.comparison import ALL, Compared, chosen, compare

COLUMNS = {
    "VCs": "vcs",
    "VLANs": "vlans",
    "rules": "rules_max_switch",
    "mean": "mean_switches",
    "most": "max_switches",
    "load": "max_channel_load",
    "bound": "load_bound",
    "minimal": "minimal",
    "flow control": "flow_control",
    "acyclic": "acyclic",
    "ms": "routing_ms",
}
"""The table of a comparison: heading -> key of the plan's summary."""
EXPLANATION = (
    "rules: on the switch that has most; mean, most: switches on a path; load: paths over the"
    " most loaded channel, which on shortest paths is no less than the bound"
)


@click.command(name="plan")
@click.argument("spec")
@plan_options()
@click.option("--out", metavar="F.json", help="Write the plan with every path to this file.")
@click.option("--compare", "comparing", is_flag=True, help="Compare engines: all, or a,b,c.")
@json_option
def command(
    spec: str,
    request: PlanRequest,
    out: str | None,
    comparing: bool,
    as_json: bool,
) -> None:
    """Plan the routes of SPEC and print what they cost and whether they can deadlock.

    The verdict is about the flow control that the plan is for.

    Example: knotless plan torus,4,4 --engine dor --vcs 1 --select low-port

    Example: knotless plan torus,4,4 --engine all --compare
    """
    if comparing:
        if out is not None:
            raise PlanError("--out writes one plan; leave it out with --compare")
        each = compare(load(spec), request.engine, request)
        rows = list(
            track(
                each,
                f"Planning {spec}",
                total=len(chosen(request.engine)),
                console=Console(stderr=True),
                transient=True,
                disable=as_json,
            )
        )
        if as_json:
            print_json({"engines": [row.as_json() for row in rows]})
        else:
            _print_comparison(spec, rows)
        return
    if request.engine == ALL:
        raise PlanError("--engine all needs --compare")
    plan = make_plan(load(spec), request)
    checked = CheckedPlan(plan)
    summary = checked.summary()
    if out is not None:
        write_text(out, json.dumps(plan_to_json(plan, summary)) + "\n")
    if as_json:
        print_json(summary)
    else:
        print_table(f"{plan.engine} on {plan.fabric.name}", summary)
        click.echo(checked.verdict.text)


def _print_comparison(spec: str, rows: list[Compared]) -> None:
    """Print a table, and below it the engines that do not apply, with the reason."""
    title = f"routing engines on {spec}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("engine", style="bold", no_wrap=True)
    for heading in COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        if row.summary is not None:
            cells = [_cell(row.summary[key]) for key in COLUMNS.values()]
            table.add_row(row.engine, *cells)
    Console(width=max(100, Console().width)).print(table)
    click.echo(EXPLANATION)
    for row in rows:
        if row.summary is None:
            named = row.reason.startswith(row.engine)
            click.echo(row.reason if named else f"{row.engine}: {row.reason}")


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else shown(value)
