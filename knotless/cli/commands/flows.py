"""``knotless flows``: the rules of a plan, as files for ovs-ofctl and other switches."""

from __future__ import annotations

import click

from knotless.base.counting import counted
from knotless.cli.answer import Answer, Figure, Group, Headline, Hint, print_answer
from knotless.cli.commands._plan_options import plan_options
from knotless.cli.commands._verdict_answer import engine_name
from knotless.cli.help import Command
from knotless.cli.options import (
    details_option,
    fabric_of,
    json_option,
    print_json,
    spec_argument,
)
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import write_dir
from knotless.routing.plan import make_plan, refuse_unruly
from knotless.routing.request import PlanRequest


@click.command(name="flows", cls=Command)
@spec_argument
@plan_options()
@click.option("--out", required=True, metavar="DIR", help="Directory to write the files to.")
@details_option
@json_option
def command(
    spec: str,
    request: PlanRequest,
    out: str,
    details: bool,
    as_json: bool,
) -> None:
    """Write the OpenFlow 1.3 rules of SPEC: fabric.json, and NAME.flows and NAME.groups per switch.

    With --multicast, multicast.json has the members of each group.

    With --tagging host, tags.json has the VLAN that each host must use to each MAC.

    Load them with ovs-ofctl -O OpenFlow13: add-groups first, then add-flows.

    With --multipath ecmp, rules choose among next hops by actions of Open vSwitch (Nicira), by a
    hash that begins with another number at each switch.

    Example: knotless flows torus,4,4 --engine dor --out rules && knotless check rules

    Example: knotless flows fattree2,4 --multipath ecmp --out rules
    """
    fabric = fabric_of(spec)
    plan = make_plan(fabric, request)
    refuse_unruly(plan)
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
        largest = int(rules.counts.max())
        answer = Answer(
            Headline(
                f"{fabric.name} with {engine_name(plan.engine)}",
                f"wrote {counted(rules.total, 'rules')}",
                f"for {counted(len(rules), 'switches')} to {out}",
            ),
            figures=[
                Figure("rules", rules.total, at_most=largest, where="on a switch"),
                Figure("groups", rules.groups),
                Figure("VLANs", plan.vlan_count if plan.vlan_count > 1 else None),
                Figure("virtual channels", plan.vcs if plan.vcs > 1 else None),
            ],
            hints=[Hint("prove them", ["knotless", "check", out])],
            details=[Group("rules", counts)],
        )
        print_answer(answer, details=details)
