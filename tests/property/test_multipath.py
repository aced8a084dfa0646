"""Plans with multipath on generated fabrics: delivered by every choice, and without a cycle."""

from __future__ import annotations

from collections.abc import Mapping
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
from tests.support.reference import Node, Place
from tests.support.reference_plans import NextHops, Packet

LEVELLED = st.one_of(trees(), cut(trees()), rails_and_clos())
ANY = st.one_of(LEVELLED, graphs(), grids(), without_a_switch(rails_and_clos()))


def planned(fabric: Fabric, engine: str, **choices: Any) -> Plan:
    try:
        return make_plan(fabric, engine, multipath="ecmp", **choices)
    except PlanError as error:
        assume("has no" not in str(error) and "has none" not in str(error))
        raise


def reference_of(plan: Plan) -> NextHops:
    return NextHops(to_json(plan.fabric), plan_to_json(plan, {}))


def switch_pairs(plan: Plan) -> set[tuple[str, str]]:
    hosts = plan.fabric.hosts
    return {(a.switch, b.switch) for a in hosts for b in hosts if a.switch != b.switch}


def node(plan: Plan, channel: int) -> Node:
    channels = plan.channels
    return channels.names[channels.tail[channel]], int(channels.out_port[channel]), 0


def judge(plan: Plan) -> None:
    """Compare the verdict on a plan with what following every choice shows."""
    reference = reference_of(plan)
    load: dict[Node, float] = {}
    hosts = plan.fabric.hosts
    for source, to in switch_pairs(plan):
        walks = reference.walks((source, 0), Packet(to))
        pairs = sum(a.switch == source and b.switch == to for a in hosts for b in hosts)
        for walk, share in walks.items():
            for taken in walk:
                load[taken] = load.get(taken, 0.0) + pairs * float(share)
        assert len({len(walk) for walk in walks}) == 1, "all paths of a pair have one length"
    state = state_of_plan(plan)
    verdict = verdict_of(state, "pfc")
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0)
    known = {
        (node(plan, held), node(plan, wanted))
        for held, wanted in state.dependencies[:, [0, 2]].tolist()
    }
    assert reference.edges <= known
    assert verdict.acyclic == (not has_cycle(known))
    assert verdict.safe is verdict.acyclic
    loads = {node(plan, channel): value for channel, value in enumerate(state.loads) if value}
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
    reference = reference_of(plan)
    cables = {end: peer[0] for end, peer in reference.peer.items() if peer[1] is not None}
    for to in {host.switch for host in fabric.hosts}:
        distance = distances(cables, to)
        for name, hops in distance.items():
            nearer = {
                out for (at, out), peer in cables.items() if at == name and distance[peer] < hops
            }
            taken = reference.alternatives((name, 0), Packet(to))
            assert {port for [(port, _)] in taken} == (nearer or {0})


def distances(cables: Mapping[Place, str], to: str) -> dict[str, int]:
    """Return the number of channels from each switch to another."""
    found, frontier = {to: 0}, [to]
    for name in frontier:
        for (_, _), peer in [item for item in cables.items() if item[0][0] == name]:
            if peer not in found:
                found[peer] = found[name] + 1
                frontier.append(peer)
    return found


@pytest.mark.examples(0.4)
@given(LEVELLED, st.sampled_from(list(FILES)), st.booleans())
def test_the_files_of_routers_are_the_plan(fabric: Fabric, target: str, levels: bool) -> None:
    """The reference interpreter takes the sets of the plan; the files are read by the importers."""
    # Of fewer networks of hosts, a reader of files of others takes some to be missing.
    assume(len({host.switch for host in fabric.hosts}) > 1)
    plan = planned(fabric, "fattree" if levels else "updown")
    read = read_back(FILES[target](fabric.name, router_tables(plan)))
    state = read.traffics[0].state
    verdict = verdict_of_imported(read)
    assert (verdict.undelivered, verdict.safe, verdict.missing) == (0, True, [])
    reference, channels = reference_of(plan), state.channels
    networks = {host.switch: host.name for host in read.fabric.hosts}
    for source, to in switch_pairs(plan):
        taken = state.trace(networks[source], networks[to]).hops
        ends = {
            (channels.names[channels.tail[hop.channel]], int(channels.out_port[hop.channel]))
            for hop in taken
            if hop.channel < len(channels)
        }
        written = {(at, channels.port_name(state.fabric.switch_index[at], p)) for at, p in ends}
        walks = reference.walks((source, 0), Packet(to))
        planned_ports = {(at, PORT_NAMES[target](at, p)) for walk in walks for at, p, _ in walk}
        assert written == planned_ports
