"""``knotless flows``: the rules of a plan, as files for ovs-ofctl and other switches."""

from __future__ import annotations

import click

from forwarding.openflow.compiler import compile_rules
from forwarding.openflow.directory import write_dir
from knotless.commands._options import json_option, print_json, print_table
from knotless.commands._plan_options import plan_options
from routing.plan import make_plan
from routing.request import PlanRequest
from topologies import load


@click.command(name="flows")
@click.argument("spec")
@plan_options()
@click.option("--out", required=True, metavar="DIR", help="Directory to write the files to.")
@json_option
def command(
    spec: str,
    request: PlanRequest,
    out: str,
    as_json: bool,
) -> None:
    """Write the OpenFlow 1.3 rules of SPEC: fabric.json, NAME.flows and NAME.groups a switch.

    With --multicast, multicast.json says which hosts are in which group.

    With --tagging host, tags.json says which VLAN each host must use to which MAC.

    Load them with ovs-ofctl -O OpenFlow13: add-groups first, then add-flows.

    Example: knotless flows torus,4,4 --engine dor --out rules && knotless check rules
    """
    fabric = load(spec)
    plan = make_plan(fabric, request)
    rules = compile_rules(plan)
    write_dir(fabric, rules, out, plan.multicast, plan.host_tags())
    counts = {
        "directory": out,
        "switches": len(rules),
        "rules": rules.total,
        "groups": rules.groups,
        "vlans": plan.vlan_count,
        "vcs": plan.vcs,
    }
    if as_json:
        print_json(counts)
    else:
        print_table(f"rules of {plan.engine} on {fabric.name}", counts)
