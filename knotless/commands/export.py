"""``knotless export``: a plan for ordinary 802.1Q switches."""

from __future__ import annotations

import json
from pathlib import Path

import click

from knotless.commands._options import json_option, print_json, print_table
from knotless.commands._plan_options import plan_options
from routing import host_tags
from routing.flow_control import verdict_text
from routing.l2 import bridge_lines, export
from routing.plan import make_plan
from routing.request import PlanRequest
from topologies import load
from topologies.errors import KnotlessError
from topologies.files import to_text


@click.command(name="export")
@click.argument("spec")
@plan_options(vlans="tree")
@click.option(
    "--to",
    "target",
    type=click.Choice(["l2"]),
    required=True,
    help="l2: ordinary Ethernet switches with 802.1Q VLANs and static MAC tables.",
)
@click.option("--out", required=True, metavar="DIR", help="Directory to write the files to.")
@json_option
def command(spec: str, request: PlanRequest, target: str, out: str, as_json: bool) -> None:
    """Write a plan of SPEC for ordinary switches: NAME.json and NAME.bridge for each.

    NAME.json holds PVIDs, VLAN membership and the static MAC table; NAME.bridge the same as
    commands for a Linux bridge NAME with ports NAME-ethN. fabric.json is written too, and with
    --tagging host, tags.json: which VLAN each host must use to which MAC. acyclic says whether
    the channels' dependencies under flow_control have no cycle, what floods counted in.

    Example: knotless export mesh,4,4 --engine dor --to l2 --out l2
    """
    del target
    fabric = load(spec)
    plan = make_plan(fabric, request)
    exported = export(plan)
    switches = exported.switches
    tags = plan.host_tags()
    files = {"fabric.json": to_text(fabric)}
    if tags is not None:
        files[host_tags.FILE] = host_tags.to_text(tags)
    for switch in switches:
        files[f"{switch.name}.json"] = json.dumps(switch.as_json(), indent=1) + "\n"
        files[f"{switch.name}.bridge"] = "\n".join(bridge_lines(switch)) + "\n"
    _write(Path(out), files)
    macs = [sum(map(len, switch.macs.values())) for switch in switches]
    counts = {
        "directory": out,
        "engine": plan.engine,
        "switches": len(switches),
        "vlans": plan.vlan_count,
        "macs": sum(macs),
        "macs_max_switch": max(macs),
        "flow_control": plan.flow_control,
        "acyclic": not exported.cycle,
        "cycle": exported.cycle,
    }
    if as_json:
        print_json(counts)
    else:
        print_table(f"{plan.engine} on {fabric.name} for ordinary switches", counts)
        click.echo(verdict_text(plan.flow_control, exported.cycle))


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise KnotlessError(f"{error.filename!r} cannot be written: {error.strerror}") from None
