"""``knotless flows``: the rules of a plan, as files for ovs-ofctl and other switches."""

from __future__ import annotations

import click

from knotless.commands._options import json_option, print_json, print_table, routing_options
from routing.compile import compile_rules
from routing.flowdir import write_dir
from routing.plan import make_plan
from topologies import load


@click.command(name="flows")
@click.argument("spec")
@routing_options
@click.option("--out", required=True, metavar="DIR", help="Directory to write the files to.")
@json_option
def command(
    spec: str,
    engine: str,
    vcs: int | None,
    select: str,
    tagging: str,
    root: str | None,
    out: str,
    as_json: bool,
) -> None:
    """Write the OpenFlow 1.3 rules of SPEC: fabric.json, NAME.flows and NAME.groups a switch.

    Load them with ovs-ofctl -O OpenFlow13: add-groups first, then add-flows.

    Example: knotless flows torus,4,4 --engine dor --out rules && knotless check rules
    """
    fabric = load(spec)
    plan = make_plan(fabric, engine, vcs=vcs, select=select, tagging=tagging, root=root)
    rules = compile_rules(plan)
    write_dir(fabric, rules, out)
    counts = {
        "directory": out,
        "switches": len(rules),
        "rules": sum(len(of_switch.rules) for of_switch in rules.values()),
        "groups": sum(len(of_switch.groups) for of_switch in rules.values()),
        "vlans": len(set(plan.vlans.tolist())),
        "vcs": plan.vcs,
    }
    if as_json:
        print_json(counts)
    else:
        print_table(f"rules of {engine} on {fabric.name}", counts)
