"""``knotless export --to frr`` and ``--to sonic``: a plan for IP routers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from knotless.base.errors import KnotlessError, PlanError
from knotless.base.files import folder_for_files, write_all
from knotless.cli.options import print_json, print_table
from knotless.cli.output import say
from knotless.forwarding.routed.files import FILE_NAMES, FILES, PORT_NAMES, README
from knotless.forwarding.routed.tables import router_tables
from knotless.forwarding.state import ForwardingState
from knotless.importers.fabric import AnyFabric
from knotless.importers.file_kinds import FoundFile
from knotless.importers.paths import assembled
from knotless.importers.reading import read_source
from knotless.importers.sources import Source
from knotless.routing.plan import Plan
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.imported import verdict_of_imported


def export_routes(
    plan: Plan, target: str, out: str, *, allow_deadlock: bool, as_json: bool
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
    counts = {
        "directory": out,
        "engine": plan.engine,
        "multipath": plan.multipath,
        "routers": len(routers),
        "routes": len(sets),
        "routes_max_router": max(len(router.routes) for router in routers),
        "max_next_hops": max(map(len, sets), default=0),
        "undelivered": verdict.undelivered,
        "acyclic": verdict.acyclic,
        "cycle": verdict.cycle,
        "safe": verdict.safe,
    }
    if as_json:
        print_json(counts)
        return
    print_table(f"{plan.engine} on {plan.fabric.name} for routers ({target})", counts)
    say(f"What to do with the files: {Path(out) / README}.")
    say("Read back: the packets of all hosts take the paths of the plan.")
    say(verdict.text)


def _refuse_others(folder: Path, files: Mapping[str, str]) -> None:
    """Raise KnotlessError if a folder has files of routers that are not among ``files``."""
    for old in sorted(path for name in FILE_NAMES for path in folder.glob(f"*/{name}")):
        if str(old.relative_to(folder)) not in files:
            raise KnotlessError(
                f"{folder} has {old.relative_to(folder)} of another fabric: name a new folder"
            )


def read_back(files: Mapping[str, str]) -> AnyFabric:
    """Return the fabric that files of routers describe, by their names in a folder."""
    found: list[FoundFile] = []
    for name, text in files.items():
        path = Path("/", name)
        read = read_source(Source(path, False, text.encode(), path.parent), configurations=True)
        if isinstance(read, FoundFile):
            found.append(read)
    return assembled("export", found, routes_by="static")


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
