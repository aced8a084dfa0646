"""``knotless export``: a plan for ordinary 802.1Q switches."""

from __future__ import annotations

from pathlib import Path

import click

from common.errors import KnotlessError, PlanError
from forwarding.dot1q.folder import README, files_of
from forwarding.dot1q.from_plan import export
from forwarding.dot1q.model import L2Fabric
from forwarding.dot1q.reader import KINDS, read_files
from forwarding.dot1q.state import states_of_dot1q
from knotless.commands._options import json_option, print_json, print_table
from knotless.commands._plan_options import plan_options
from routing.plan import make_plan
from routing.request import PlanRequest
from routing.vlans import host_tags
from topologies import load
from verification.check import Verdict, verdict_of
from verification.checked_plan import refuse_deadlock


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
@click.option("--allow-deadlock", is_flag=True, help="Write tables even if they can deadlock.")
@json_option
def command(
    spec: str, request: PlanRequest, target: str, out: str, allow_deadlock: bool, as_json: bool
) -> None:
    """Write a plan of SPEC for ordinary switches: NAME.json and NAME.bridge for each.

    NAME.json holds PVIDs, VLAN membership and the static MAC table; NAME.bridge the same as
    a script for a Linux bridge NAME with ports NAME-ethN. fabric.json is written too, and with
    --tagging host, tags.json: which VLAN each host must use to which MAC. README.txt says in
    what order to apply them.

    What would be written is read back and verified first: every unicast and every broadcast
    arrives exactly once, without loops, and nothing can deadlock under the flow control.
    Nothing is written if that fails.

    Example: knotless export mesh,4,4 --engine dor --to l2 --out l2
    """
    del target
    plan = make_plan(load(spec), request)
    files = files_of(export(plan))
    read = _read_back(files)
    states = states_of_dot1q(read)
    verdicts = {how: verdict_of(state, plan.flow_control) for how, state in states.items()}
    for how, of_frames in verdicts.items():
        _refuse_losses(of_frames, how)
    # Of what hosts tag, if they do: then it counts what they send untagged, too.
    verdict = next(iter(verdicts.values()))
    if not allow_deadlock:
        refuse_deadlock(plan, verdict.cycle)
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
        "flow_control": plan.flow_control,
        "acyclic": verdict.acyclic,
        "cycle": verdict.cycle,
    }
    if as_json:
        print_json(counts)
        return
    print_table(f"{plan.engine} on {plan.fabric.name} for ordinary switches", counts)
    click.echo(f"Apply all tables before any port comes up: see {Path(out) / README}.")
    click.echo("Read back: every unicast and every broadcast arrives exactly once.")
    click.echo(verdict.text)


def _read_back(files: dict[str, str]) -> L2Fabric:
    """Return what the files say, which those of both kinds must agree on."""
    first, *others = (read_files(files, kind) for kind in KINDS)
    if any(other != first for other in others):
        raise KnotlessError(
            f"the files {' and '.join(KINDS)} differ: this is a mistake of knotless"
        )
    return first


def _refuse_losses(verdict: Verdict, how: str) -> None:
    """Raise PlanError unless the tables deliver everything that hosts send tagged, or untagged."""
    if verdict.failed:
        raise PlanError(
            f"{verdict.fabric}: the tables would not deliver everything that hosts send {how}"
            f" exactly once ({verdict.undelivered} pairs, {verdict.broadcasts_undelivered}"
            f" broadcasts): {verdict.problems[0]}"
        )


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write the files; tags.json of an earlier export would contradict them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / host_tags.FILE).unlink(missing_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise KnotlessError(f"{error.filename!r} cannot be written: {error.strerror}") from None
