"""``knotless export``: a plan for ordinary 802.1Q switches, or for routers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from knotless.base.errors import KnotlessError, PlanError, ProofError
from knotless.base.files import folder_for_files, write_all, write_whole
from knotless.cli.answer import Answer, Figure, Group, print_answer
from knotless.cli.commands._plan_options import plan_options
from knotless.cli.commands._verdict_answer import deadlock_reasons, engine_name, verdict_headline
from knotless.cli.help import Command
from knotless.cli.options import (
    details_option,
    fabric_of,
    json_option,
    print_json,
    spec_argument,
)
from knotless.forwarding.dot1q.files import README as BRIDGES_README
from knotless.forwarding.dot1q.files import files_of, read_files
from knotless.forwarding.dot1q.from_plan import export
from knotless.forwarding.dot1q.model import L2Fabric
from knotless.forwarding.dot1q.state import states_of_dot1q
from knotless.forwarding.dot1q.target import targets
from knotless.forwarding.routed.files import FILE_NAMES, FILES, PORT_NAMES, README
from knotless.forwarding.routed.tables import router_tables
from knotless.forwarding.state import ForwardingState
from knotless.importers.fabric import AnyFabric
from knotless.importers.file_kinds import FoundFile
from knotless.importers.paths import assembled
from knotless.importers.reading import read_source
from knotless.importers.sources import Source
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.routing.vlans import host_tags
from knotless.topologies.formats.switch_files import files_to_remove
from knotless.verification.bridge_proof import bridge_proof
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.checked_plan import CheckedPlan, refuse_deadlock
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict


def export_routes(
    plan: Plan, target: str, out: str, *, allow_deadlock: bool, details: bool, as_json: bool
) -> None:
    """Write the files of each router, once they are read back to the paths of the plan."""
    routers = router_tables(plan)
    files = FILES[target](plan.fabric.name, routers)
    read = read_back(files)
    for difference in differences(CheckedPlan(plan).state, read, target):
        raise KnotlessError(f"the files differ from the plan: {difference}; a mistake of knotless")
    verdict = verdict_of_imported(read)
    if verdict.undelivered or verdict.missing:
        raise KnotlessError(
            f"the files do not say all: {[*verdict.problems, *verdict.missing][0]}; a mistake of"
            " knotless"
        )
    if not (verdict.safe or allow_deadlock):
        raise PlanError(
            f"{plan.engine} on {plan.fabric.name} {verdict.text}; choose another engine or"
            " --multipath, or allow it with --allow-deadlock"
        )
    _refuse_others(Path(out), files)
    with folder_for_files(Path(out)):
        for router in routers:
            Path(out, router.name).mkdir(exist_ok=True)
        write_all({Path(out, name): text for name, text in files.items()})
    sets = [ends for router in routers for ends in router.routes.values()]
    most = max(len(router.routes) for router in routers)
    next_hops = max(map(len, sets), default=0)
    counts = {
        "directory": out,
        "engine": plan.engine,
        "multipath": plan.multipath,
        "routers": len(routers),
        "routes": len(sets),
        "routes_max_router": most,
        "max_next_hops": next_hops,
        "undelivered": verdict.undelivered,
        "acyclic": verdict.acyclic,
        "cycle": verdict.cycle,
        "safe": verdict.safe,
    }
    if as_json:
        print_json(counts)
        return
    figures = [
        Figure("routers", len(routers)),
        Figure("routes", len(sets), at_most=most, where="on a router"),
        Figure("next hops", next_hops if next_hops > 1 else None, "at most"),
    ]
    read_text = "read back: the packets of all hosts take the paths of the plan"
    print_answer(_answer(plan, verdict, out, figures, [read_text], counts, README), details=details)


def _refuse_others(folder: Path, files: Mapping[str, str]) -> None:
    """Raise KnotlessError if a folder has files of routers that are not among ``files``."""
    for old in sorted(path for name in FILE_NAMES for path in folder.glob(f"*/{name}")):
        if str(old.relative_to(folder)) not in files:
            raise KnotlessError(
                f"{folder} has {old.relative_to(folder)} of another fabric: name a new folder"
            )


def read_back(files: Mapping[str, str]) -> AnyFabric:
    """Return the fabric that files of routers describe, by their names in a folder."""
    readable: list[FoundFile] = []
    for name, text in files.items():
        path = Path("/", name)
        read = read_source(Source(path, False, text.encode(), path.parent), configurations=True)
        if isinstance(read, FoundFile):
            readable.append(read)
    return assembled("export", readable, routes_by="static")


def differences(state: ForwardingState, read: AnyFabric, target: str) -> Iterator[str]:
    """Yield pairs of hosts whose packets can take other links by the files than by the plan.

    All hosts of a router are alike in both: one of each is followed.
    """
    of_switch = {host.switch: host.name for host in state.fabric.hosts}
    networks = {host.switch: host.name for host in read.fabric.hosts}
    written = read.traffics[0].state
    if {*of_switch} != {*networks}:
        yield f"hosts at {sorted({*of_switch} ^ {*networks})[0]}"
        return
    for a, sender in of_switch.items():
        for b, receiver in of_switch.items():
            if a == b:
                continue
            planned = {
                (state.channels.names[tail], PORT_NAMES[target](state.channels.names[tail], port))
                for tail, port in _ports(state, sender, receiver)
            }
            taken = {
                (written.channels.names[tail], written.channels.port_name(tail, port))
                for tail, port in _ports(written, networks[a], networks[b])
            }
            if planned != taken:
                yield f"{sender} to {receiver}: {sorted(planned ^ taken)[0]}"


def _ports(state: ForwardingState, sender: str, receiver: str) -> Iterator[tuple[int, int]]:
    channels = state.channels
    for hop in state.trace(sender, receiver).hops:
        if hop.channel < len(channels):
            yield int(channels.tail[hop.channel]), int(channels.out_port[hop.channel])


@click.command(name="export", cls=Command)
@spec_argument
@plan_options(vlans="tree")
@click.option(
    "--to",
    "target",
    type=click.Choice(["l2", *FILES], case_sensitive=False),
    required=True,
    help="l2: ordinary Ethernet switches with 802.1Q VLANs and static MAC tables; frr, sonic: IP"
    " routers with static routes.",
)
@click.option("--out", required=True, metavar="DIR", help="Directory to write the files to.")
@click.option("--allow-deadlock", is_flag=True, help="Write tables even if they can deadlock.")
@click.option(
    "--proof",
    metavar="F",
    help="With --to l2: write what knotless verify DIR F needs to check the verdict.",
)
@details_option
@json_option
def command(
    spec: str,
    request: PlanRequest,
    target: str,
    out: str,
    allow_deadlock: bool,
    proof: str | None,
    details: bool,
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

    Example: knotless export ring,6 --to l2 --out l2 --proof l2.proof && knotless verify l2 l2.proof

    Example: knotless export fattree2,4 --multipath ecmp --to sonic --out sonic
    """
    if request.protection != "none":
        raise PlanError("--protection needs OpenFlow switches; omit it with export")
    if target in FILES:
        if proof is not None:
            raise PlanError(f"--proof needs --to l2; for routers: knotless check {out} --proof F")
        plan = make_plan(fabric_of(spec), request.but(vlans="default"))
        export_routes(
            plan, target, out, allow_deadlock=allow_deadlock, details=details, as_json=as_json
        )
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
    evidence, sent = "", None
    if proof is not None:
        evidence, sent = bridge_proof(files, read, states["untagged"], verdicts["untagged"])
    _write(Path(out), files)
    if proof is not None:
        write_whole(proof, evidence, ProofError)
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
        **({} if proof is None else {"proof": proof}),
    }
    if as_json:
        print_json(counts)
        return
    figures = [
        Figure("switches", len(read.switches)),
        Figure("VLANs", plan.vlan_count),
        Figure("MAC addresses", sum(macs), at_most=max(macs), where="on a switch"),
    ]
    remarks = [
        "read back: every unicast and every broadcast arrives exactly once",
        "apply all tables before any port comes up",
        *([] if proof is None else [f"proof: {proof}"]),
        *([sent.not_covered] if sent is not None and sent.not_covered else []),
    ]
    answer = _answer(plan, verdict, out, figures, remarks, counts, BRIDGES_README)
    print_answer(answer, details=details)


def _answer(
    plan: Plan,
    verdict: Verdict | ImportedVerdict,
    out: str,
    figures: Sequence[Figure],
    remarks: Sequence[str],
    counts: Mapping[str, object],
    readme: str,
) -> Answer:
    """Return what to say about files that were written to ``out``, where ``readme`` is one."""
    subject = f"{plan.fabric.name} with {engine_name(plan.engine)}, written to {out}"
    return Answer(
        verdict_headline(subject, verdict),
        why=[*deadlock_reasons(verdict)],
        figures=figures,
        remarks=[*remarks, f"what to do with the files: {Path(out) / readme}"],
        details=[Group("files", counts)],
    )


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
    """Write the files; those of an earlier export would contradict them."""
    others = [folder / host_tags.FILE] if host_tags.FILE not in files else []
    others += files_to_remove(folder, files, KnotlessError)
    with folder_for_files(folder):
        write_all({folder / name: text for name, text in files.items()}, remove=others)
