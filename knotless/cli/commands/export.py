"""``knotless export``: a plan for ordinary 802.1Q switches, or for routers."""

from __future__ import annotations

from pathlib import Path

import click

from knotless.base.errors import KnotlessError, PlanError
from knotless.base.files import folder_for_files, write_all
from knotless.cli.commands._export_routes import export_routes
from knotless.cli.commands._plan_options import plan_options
from knotless.cli.options import (
    fabric_of,
    json_option,
    print_json,
    print_table,
    spec_argument,
)
from knotless.cli.output import say
from knotless.forwarding.dot1q.files import README, files_of, read_files
from knotless.forwarding.dot1q.from_plan import export
from knotless.forwarding.dot1q.model import L2Fabric
from knotless.forwarding.dot1q.state import states_of_dot1q
from knotless.forwarding.dot1q.target import targets
from knotless.forwarding.routed.files import FILES
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.routing.vlans import host_tags
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.checked_plan import refuse_deadlock


@click.command(name="export")
@spec_argument
@plan_options(vlans="tree")
@click.option(
    "--to",
    "target",
    type=click.Choice(["l2", *FILES]),
    required=True,
    help="l2: ordinary Ethernet switches with 802.1Q VLANs and static MAC tables; frr, sonic: IP"
    " routers with static routes.",
)
@click.option("--out", required=True, metavar="DIR", help="Directory to write the files to.")
@click.option("--allow-deadlock", is_flag=True, help="Write tables even if they can deadlock.")
@json_option
def command(
    spec: str,
    request: PlanRequest,
    target: str,
    out: str,
    allow_deadlock: bool,
    as_json: bool,
) -> None:
    """Write a plan of SPEC for switches or routers without OpenFlow.

    --to l2: NAME.json contains PVIDs, VLAN membership and the static MAC table of switch NAME;
    NAME.bridge is the same as a script for a Linux bridge NAME with ports NAME-ethN. fabric.json is
    written too, and with --tagging host, tags.json: the VLAN that each host must use to each MAC.

    --to frr: NAME/frr.conf; --to sonic: NAME/config_db.json. They have static routes, with
    --multipath ecmp to all next hops; layer1_topology.json has the cables.

    README.txt says in what order to apply the files. They are first read back and verified: with
    --to l2 every unicast and every broadcast must arrive exactly once, without loops, with others
    the packets of all hosts must take the paths of the plan, and no deadlock may be possible under
    the flow control. Nothing is written if this fails.

    Example: knotless export mesh,4,4 --engine dor --to l2 --out l2

    Example: knotless export fattree2,4 --multipath ecmp --to sonic --out sonic
    """
    if request.protection != "none":
        raise PlanError("--protection needs OpenFlow switches; omit it with export")
    if target in FILES:
        plan = make_plan(fabric_of(spec), request.but(vlans="default"))
        export_routes(plan, target, out, allow_deadlock=allow_deadlock, as_json=as_json)
        return
    plan = make_plan(fabric_of(spec), request)
    files = files_of(export(plan))
    read = _read_back(files)
    states = states_of_dot1q(read)
    verdicts = {how: verdict_of(state, plan.flow_control) for how, state in states.items()}
    for how, of_frames in verdicts.items():
        _refuse_losses(of_frames, how)
    # If hosts tag, this state includes the dependencies of untagged frames.
    verdict = next(iter(verdicts.values()))
    if not allow_deadlock:
        refuse_deadlock(plan, verdict)
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
        "safe": verdict.safe,
    }
    if as_json:
        print_json(counts)
        return
    print_table(f"{plan.engine} on {plan.fabric.name} for ordinary switches", counts)
    say(f"Apply all tables before any port comes up: see {Path(out) / README}.")
    say("Read back: every unicast and every broadcast arrives exactly once.")
    say(verdict.text)


def _read_back(files: dict[str, str]) -> L2Fabric:
    """Return what the files say, which those of both kinds must agree on."""
    first, *others = (read_files(files, kind) for kind in targets())
    if any(other != first for other in others):
        raise KnotlessError(
            f"the files {' and '.join(targets())} differ: this is a mistake of knotless"
        )
    return first


def _refuse_losses(verdict: Verdict, how: str) -> None:
    """Raise PlanError unless the tables deliver all frames, sent as ``how`` says."""
    if verdict.failed:
        raise PlanError(
            f"{verdict.fabric}: the tables would not deliver everything that hosts send {how}"
            f" exactly once ({verdict.undelivered} pairs, {verdict.broadcasts_undelivered}"
            f" broadcasts): {verdict.problems[0]}"
        )


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write the files; tags.json of an earlier export would contradict them."""
    tags = [folder / host_tags.FILE] if host_tags.FILE not in files else []
    with folder_for_files(folder):
        write_all({folder / name: text for name, text in files.items()}, remove=tags)
