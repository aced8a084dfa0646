"""``knotless plan``: the figures of an engine's plan for a fabric."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from common.errors import PlanError
from common.files import write_whole
from knotless.commands._options import json_option, print_json, print_table, shown
from knotless.commands._plan_options import plan_options, without_option
from routing.plan import make_plan
from routing.plan_file import plan_to_json
from routing.repair import repair
from routing.request import PlanRequest
from topologies import load
from topologies.failures import Failures, hosts_by_part
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
"""The columns of a comparison: heading -> key of the plan's summary."""
MOST_NAMES = 10
"""Hosts that are named of each part of a fabric that has come apart."""
EXPLANATION = (
    "rules: on the switch with the most; mean, most: switches on a path; load: paths on the"
    " most loaded channel, and its lower bound for shortest paths"
)


@click.command(name="plan")
@click.argument("spec")
@plan_options()
@without_option
@click.option("--out", metavar="F.json", help="Write the plan with every path to this file.")
@click.option("--compare", "comparing", is_flag=True, help="Compare engines: all, or a,b,c.")
@json_option
def command(
    spec: str,
    request: PlanRequest,
    without: tuple[str, ...],
    out: str | None,
    comparing: bool,
    as_json: bool,
) -> None:
    """Plan the routes of SPEC; print their figures and whether they can deadlock.

    The verdict applies to the flow control of the plan. With --without, the plan of the intact
    fabric is repaired: only paths that used a failed part move.

    Example: knotless plan torus,4,4 --engine dor --vcs 1 --select low-port

    Example: knotless plan torus,4,4 --engine all --compare

    Example: knotless plan torus,4,4 --without s1-s2 --without s11
    """
    if comparing:
        if out is not None:
            raise PlanError("--out writes one plan; omit it with --compare")
        if without:
            raise PlanError("--without repairs one plan; omit it with --compare")
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
    fabric = load(spec)
    failures = Failures.of(fabric, without)
    plan = make_plan(fabric, request)
    figures: dict[str, object] = {}
    if failures:
        repaired = repair(plan, failures)
        plan, figures = repaired.plan, repaired.summary()
    checked = CheckedPlan(plan)
    summary = checked.summary() | figures
    if out is not None:
        write_whole(out, json.dumps(plan_to_json(plan, summary)) + "\n")
    if as_json:
        print_json(summary)
    else:
        separated: list[list[str]] = hosts_by_part(fabric, failures)
        shown = {key: value for key, value in summary.items() if key != "separated"}
        print_table(f"{plan.engine} on {fabric.name}", shown)
        if len(separated) > 1:
            for names in separated:
                click.echo(f"reach only each other: {_some(names)}")
        click.echo(checked.verdict.text)


def _some(names: list[str]) -> str:
    """Return the first names, and the number of further ones."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _print_comparison(spec: str, rows: list[Compared]) -> None:
    """Print a table, then the engines that cannot route the fabric, with the reason."""
    title = f"routing engines on {spec}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("engine", style="bold", no_wrap=True)
    for heading in COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        if row.summary is not None:
            cells = [_cell(row.summary[key]) for key in COLUMNS.values()]
            table.add_row(row.engine.rpartition("/")[2], *cells)  # of a file, its name
    Console(width=max(100, Console().width)).print(table)
    click.echo(EXPLANATION)
    for row in rows:
        if row.summary is None:
            named = row.reason.startswith(row.engine)
            click.echo(row.reason if named else f"{row.engine}: {row.reason}")


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else shown(value)
