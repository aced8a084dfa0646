"""``knotless export``: a plan for ordinary 802.1Q switches."""

from __future__ import annotations

from pathlib import Path

import click

from forwarding.dot1q.folder import README, files_of
from forwarding.dot1q.from_plan import export
from forwarding.dot1q.model import L2Fabric
from forwarding.dot1q.reader import KINDS, read_files
from forwarding.dot1q.verify import FLOW_CONTROL, Verdict, verify
from knotless.commands._options import json_option, print_json, print_table
from knotless.commands._routing import Choices, tree_routing_options
from routing import host_tags
from topologies import load
from topologies.errors import KnotlessError, PlanError


@click.command(name="export")
@click.argument("spec")
@tree_routing_options
@click.option(
    "--to",
    "target",
    type=click.Choice(["l2"]),
    required=True,
    help="l2: ordinary Ethernet switches with 802.1Q VLANs and static MAC tables.",
)
@click.option("--out", required=True, metavar="DIR", help="Directory to write the files to.")
@click.option(
    "--allow-deadlock", is_flag=True, help="Write tables even if they can deadlock under PAUSE."
)
@json_option
def command(
    spec: str, choices: Choices, target: str, out: str, allow_deadlock: bool, as_json: bool
) -> None:
    """Write a plan of SPEC for ordinary switches: NAME.json and NAME.bridge for each.

    NAME.json holds PVIDs, VLAN membership and the static MAC table; NAME.bridge the same as
    a script for a Linux bridge NAME with ports NAME-ethN. fabric.json is written too, and with
    --tagging host, tags.json: which VLAN each host must use to which MAC. README.txt says in
    what order to apply them.

    What would be written is read back and verified first: every unicast and every broadcast
    arrives exactly once, without loops, and nothing can deadlock under PAUSE. Nothing is
    written if that fails.

    Example: knotless export mesh,4,4 --engine dor --to l2 --out l2
    """
    del target
    plan = choices.plan(load(spec))
    files = files_of(export(plan))
    read = _read_back(files)
    verdict = verify(read)
    _refuse(plan.fabric.name, verdict, allow_deadlock)
    _write(Path(out), files)
    macs = [sum(map(len, switch.macs.values())) for switch in read.switches]
    counts = {
        "directory": out,
        "engine": plan.engine,
        "switches": len(read.switches),
        "vlans": plan.vlan_count,
        "macs": sum(macs),
        "macs_max_switch": max(macs),
        "pairs": verdict.pairs,
        "undelivered": verdict.undelivered,
        "broadcasts_undelivered": verdict.broadcasts_undelivered,
        "flow_control": FLOW_CONTROL,
        "acyclic": not verdict.cycle,
        "cycle": verdict.cycle,
    }
    if as_json:
        print_json(counts)
        return
    print_table(f"{plan.engine} on {plan.fabric.name} for ordinary switches", counts)
    click.echo(f"Apply all tables before any port comes up: see {Path(out) / README}.")
    click.echo(_summary(verdict))


def _read_back(files: dict[str, str]) -> L2Fabric:
    """Return what the files say, which those of both kinds must agree on."""
    first, *others = (read_files(files, kind) for kind in KINDS)
    if any(other != first for other in others):
        raise KnotlessError(
            f"the files {' and '.join(KINDS)} differ: this is a mistake of knotless"
        )
    return first


def _refuse(fabric: str, verdict: Verdict, allow_deadlock: bool) -> None:
    """Raise PlanError unless the tables deliver and cannot deadlock."""
    if not verdict.delivers:
        what = verdict.problems[0] if verdict.problems else f"a loop at {verdict.loops[0]}"
        raise PlanError(
            f"{fabric}: the tables would not deliver everything exactly once"
            f" ({verdict.undelivered} pairs, {verdict.broadcasts_undelivered} broadcasts): {what}"
        )
    if verdict.cycle and not allow_deadlock:
        raise PlanError(
            f"{fabric}: the tables can deadlock under {FLOW_CONTROL}: {_circle(verdict.cycle)};"
            " choose another engine, or write them with --allow-deadlock"
        )


def _summary(verdict: Verdict) -> str:
    delivered = "Read back: every unicast and every broadcast arrives exactly once"
    if verdict.cycle:
        return f"{delivered}. This can deadlock under {FLOW_CONTROL}: {_circle(verdict.cycle)}"
    return f"{delivered}, and nothing can deadlock under {FLOW_CONTROL}."


def _circle(cycle: list[str]) -> str:
    return " -> ".join([*cycle, cycle[0]])


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write the files; tags.json of an earlier export would contradict them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / host_tags.FILE).unlink(missing_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise KnotlessError(f"{error.filename!r} cannot be written: {error.strerror}") from None
