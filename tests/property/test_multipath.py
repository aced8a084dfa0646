"""Plans with multipath on generated fabrics: delivered by every choice, and without a cycle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from knotless.base.errors import PlanError
from knotless.cli.commands.export import read_back
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.routed.files import FILES, PORT_NAMES
from knotless.forwarding.routed.tables import router_tables
from knotless.routing.plan import Plan, make_plan
from knotless.routing.plan_json import plan_to_json
from knotless.topologies import Fabric
from knotless.topologies.formats.files import to_json
from knotless.verification.check import verdict_of
from knotless.verification.imported import verdict_of_imported
from tests.property.test_every_engine import trees
from tests.support.cycles import has_cycle
from tests.support.fabric_strategies import (
    cut,
    graphs,
    grids,
    rails_and_clos,
    without_a_switch,
)
from tests.support.multipath_walker import MultipathWalker, Port

LEVELLED = st.one_of(trees(), cut(trees()), rails_and_clos())
ANY = st.one_of(LEVELLED, graphs(), grids(), without_a_switch(rails_and_clos()))


def planned(fabric: Fabric, engine: str, **choices: Any) -> Plan:
    try:
        return make_plan(fabric, engine, multipath="ecmp", **choices)
    except PlanError as error:
        assume("has no" not in str(error) and "has none" not in str(error))
        raise


def walker_of(plan: Plan) -> MultipathWalker:
    return MultipathWalker(to_json(plan.fabric), plan_to_json(plan, {})["next_hops"])  # type: ignore[arg-type]


def switch_pairs(plan: Plan) -> set[tuple[str, str]]:
    hosts = plan.fabric.hosts
    return {(a.switch, b.switch) for a in hosts for b in hosts if a.switch != b.switch}


def port(plan: Plan, channel: int) -> Port:
    channels = plan.channels
    return channels.names[channels.tail[channel]], int(channels.out_port[channel])


def judge(plan: Plan) -> None:
    """Compare the verdict on a plan with what following every choice shows."""
    walker = walker_of(plan)
    waits: set[tuple[Port, Port]] = set()
    load: dict[Port, float] = {}
    hosts = plan.fabric.hosts
    for source, to in switch_pairs(plan):
        waits |= walker.dependencies(source, to)
        pairs = sum(a.switch == source and b.switch == to for a in hosts for b in hosts)
        for end, share in walker.shares(source, to).items():
            load[end] = load.get(end, 0.0) + pairs * float(share)
        assert len(walker.lengths(source, to)) == 1, "all paths of a pair have one length"
    state = state_of_plan(plan)
    verdict = verdict_of(state, "pfc")
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0)
    known = {
        (port(plan, held), port(plan, wanted))
        for held, wanted in state.dependencies[:, [0, 2]].tolist()
    }
    assert waits <= known
    assert verdict.acyclic == (not has_cycle(known))
    assert verdict.safe is verdict.acyclic
    loads = {port(plan, channel): value for channel, value in enumerate(state.loads) if value}
    assert loads == pytest.approx(load)


@pytest.mark.examples(0.6)
@given(ANY, st.integers(1, 3), st.sampled_from(["spread", "low-port"]))
def test_up_and_down_by_every_choice(fabric: Fabric, vcs: int, select: str) -> None:
    plan = planned(fabric, "updown", vcs=vcs, select=select)
    judge(plan)
    assert verdict_of(state_of_plan(plan), "pause").acyclic


@pytest.mark.examples(0.4)
@given(LEVELLED)
def test_fat_trees_by_every_choice(fabric: Fabric) -> None:
    plan = planned(fabric, "fattree")
    judge(plan)
    assert verdict_of(state_of_plan(plan), "pause").acyclic


@pytest.mark.examples(0.4)
@given(ANY)
def test_shortest_paths_are_all_taken(fabric: Fabric) -> None:
    plan = planned(fabric, "minimal")
    judge(plan)
    walker = walker_of(plan)
    for to in {host.switch for host in fabric.hosts}:
        distance = distances(walker, to)
        for name, hops in distance.items():
            nearer = {
                (at, out)
                for (at, out), peer in walker.peer.items()
                if at == name and distance[peer] == hops - 1
            }
            assert set(walker.ports(name, to)) == nearer


def distances(walker: MultipathWalker, to: str) -> dict[str, int]:
    """Return the number of channels from each switch to another."""
    found, frontier = {to: 0}, [to]
    for name in frontier:
        for (_, _), peer in [item for item in walker.peer.items() if item[0][0] == name]:
            if peer not in found:
                found[peer] = found[name] + 1
                frontier.append(peer)
    return found


@pytest.mark.examples(0.4)
@given(LEVELLED, st.sampled_from(list(FILES)), st.booleans())
def test_the_files_of_routers_are_the_plan(fabric: Fabric, target: str, levels: bool) -> None:
    """An independent walker takes the sets of the plan; the files are read by the importers."""
    # Of fewer networks of hosts, a reader of files of others takes some to be missing.
    assume(len({host.switch for host in fabric.hosts}) > 1)
    plan = planned(fabric, "fattree" if levels else "updown")
    read = read_back(FILES[target](fabric.name, router_tables(plan)))
    state = read.traffics[0].state
    verdict = verdict_of_imported(read)
    assert (verdict.undelivered, verdict.safe, verdict.missing) == (0, True, [])
    walker, channels = walker_of(plan), state.channels
    networks = {host.switch: host.name for host in read.fabric.hosts}
    for source, to in switch_pairs(plan):
        taken = state.trace(networks[source], networks[to]).hops
        ends = {
            (channels.names[channels.tail[hop.channel]], int(channels.out_port[hop.channel]))
            for hop in taken
            if hop.channel < len(channels)
        }
        written = {(at, channels.port_name(state.fabric.switch_index[at], p)) for at, p in ends}
        planned_ports = {(at, PORT_NAMES[target](at, p)) for at, p in walker.shares(source, to)}
        assert written == planned_ports
