"""``knotless flows``: the rules of a plan, as files for ovs-ofctl and other switches."""

from __future__ import annotations

from dataclasses import replace

import click

from knotless.commands._multicast import multicast_option
from knotless.commands._options import json_option, print_json, print_table
from knotless.commands._routing import Choices, routing_options
from routing.compile import compile_rules
from routing.flowdir import write_dir
from routing.multicast import groups_of
from topologies import load


@click.command(name="flows")
@click.argument("spec")
@routing_options
@multicast_option
@click.option("--out", required=True, metavar="DIR", help="Directory to write the files to.")
@json_option
def command(
    spec: str,
    choices: Choices,
    multicast: dict[int, list[str]],
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
    plan = replace(choices.plan(fabric), multicast=groups_of(fabric, multicast))
    rules = compile_rules(plan)
    write_dir(fabric, rules, out, plan.multicast, plan.host_tags())
    counts = {
        "directory": out,
        "switches": len(rules),
        "rules": sum(len(of_switch.rules) for of_switch in rules.values()),
        "groups": sum(len(of_switch.groups) for of_switch in rules.values()),
        "vlans": plan.vlan_count,
        "vcs": plan.vcs,
    }
    if as_json:
        print_json(counts)
    else:
        print_table(f"rules of {plan.engine} on {fabric.name}", counts)
