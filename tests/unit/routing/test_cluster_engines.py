"""Engines of dragonflies, HyperX and others: virtual channels, loads and lengths of the papers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from knotless._core.graph import StateGraph
from knotless.base.errors import PlanError
from knotless.routing.graphs.balance import balanced_paths
from knotless.routing.graphs.phases import Phases
from knotless.routing.graphs.task import Selection, Task
from knotless.routing.plan import Plan, make_plan
from knotless.routing.routes import ExplicitRoutes, TableRoutes
from knotless.topologies import load
from knotless.topologies.failures import without_links
from knotless.topologies.formats.files import from_json, to_json
from knotless.verification.checked_plan import CheckedPlan

# fabric, engine, virtual channels that the literature states, most hops between switches
VIRTUAL_CHANNELS = [
    ("dragonfly,a=4,h=2,p=2", "dragonfly", 2, 3),
    ("dragonfly,a=4,h=2,p=2", "dragonfly-valiant", 3, 5),
    ("dragonfly,a=4,h=2,p=2,g=5", "dragonfly-valiant", 3, 5),
    ("dragonflyplus,l=2,s=2,h=2,p=2", "dragonflyplus", 1, 3),
    ("dragonflyplus,l=2,s=2,h=2,p=2", "dragonflyplus-valiant", 2, 6),
    ("hyperx,S=4x4x4", "hyperx", 1, 3),
    ("hyperx,S=4x4x4", "dimwar", 2, 6),
    ("hyperx,S=3x4,K=2,hosts=3", "hyperx", 1, 2),
    ("fullmesh,6", "hyperx", 1, 1),
    ("fullmesh,6", "dimwar", 2, 2),
    ("fullmesh,6", "valiant", 2, 2),
    ("slimfly,5,hosts=1", "sbp", 2, 2),
    ("slimfly,5,hosts=1", "valiant", 4, 4),
    ("polarfly,4,hosts=1", "sbp", 2, 2),
    ("polarfly,4,hosts=1", "valiant", 4, 4),
    ("clos3,4", "fattree", 1, 4),
    ("rail,4,2,2,unit=2", "fattree", 1, 2),
    ("cube,4x4x8", "dor", 2, 8),
    ("cube,4x4x8,twist", "cube", 2, 6),
    ("cube,4x8x8,twist", "cube", 2, 6),
]


def hops(plan: Plan) -> int:
    return int((plan.routes.channels >= 0).sum(axis=2).max())


@pytest.mark.parametrize(("spec", "engine", "vcs", "longest"), VIRTUAL_CHANNELS)
def test_plans_take_the_virtual_channels_of_the_literature(
    spec: str, engine: str, vcs: int, longest: int
) -> None:
    plan = make_plan(load(spec), engine)
    checked = CheckedPlan(plan)
    assert plan.vcs == vcs
    assert checked.verdict.acyclic
    assert (checked.verdict.undelivered, checked.verdict.broadcasts_undelivered) == (0, 0)
    assert hops(plan) == longest


@pytest.mark.parametrize("switches", [2, 3, 4, 7, 12])
@pytest.mark.parametrize("select", ["spread", "low-port"])
def test_two_ordered_links_of_a_full_mesh_take_one_virtual_channel(
    switches: int, select: Selection
) -> None:
    plan = make_plan(load(f"fullmesh,{switches},hosts=3"), "valiant", vcs=1, select=select)
    verdict = CheckedPlan(plan).verdict
    assert (plan.vcs, verdict.acyclic, verdict.undelivered) == (1, True, 0)

    def number(channel: int) -> int:
        return int(plan.channels.head[channel] - plan.channels.tail[channel]) % switches

    for row in np.flatnonzero(plan.senders):
        for target in range(switches):
            path = [c for c in plan.routes.channels[row, target].tolist() if c >= 0]
            apart = (target - int(plan.row_switch[row])) % switches
            possible = any(first < (apart - first) % switches for first in range(1, switches))
            assert len(path) == (0 if apart == 0 else 2 if possible else 1)
            if len(path) == 2:
                assert number(path[0]) < number(path[1])


def traffic_of_groups(plan: Plan, size: int) -> int:
    """Return the load of the busiest channel if each group of switches sends to the next one."""
    group = np.arange(len(plan.channels.names)) // size
    groups = group.max() + 1
    rows = np.flatnonzero(plan.senders)
    pairs = group[plan.row_switch[rows]][:, None] + 1 == group[None, :]
    pairs |= (group[plan.row_switch[rows]][:, None] == groups - 1) & (group[None, :] == 0)
    used = plan.routes.channels[rows][pairs]
    return int(np.bincount(used[used >= 0]).max())


def test_valiant_spreads_traffic_from_each_group_to_the_next() -> None:
    fabric = load("dragonfly,a=4,h=2,p=1")
    minimal = traffic_of_groups(make_plan(fabric, "dragonfly"), 4)
    valiant = traffic_of_groups(make_plan(fabric, "dragonfly-valiant"), 4)
    assert minimal == 4 * 4, "all pairs of two groups on one global link"
    assert valiant <= minimal / 2


def test_two_hops_spread_traffic_between_two_switches() -> None:
    fabric = load("fullmesh,8,hosts=7")
    loads = []
    for engine in ("hyperx", "dimwar"):
        plan = make_plan(fabric, engine)
        rows = np.flatnonzero(plan.row_switch == 0)
        used = plan.routes.channels[rows, 1]
        loads.append(int(np.bincount(used[used >= 0]).max()))
    one_path = len({tuple(path) for path in plan.routes.channels[rows, 1].tolist()})
    assert loads[1] == 1 < one_path


@pytest.mark.parametrize("engine", ["dragonfly", "dragonfly-valiant"])
def test_a_damaged_dragonfly_is_routed_over_what_remains_or_refused(engine: str) -> None:
    trunked = load("dragonfly,a=2,h=2,p=1,g=3")
    assert make_plan(trunked, "auto").engine == "dragonfly"
    # Group 0 keeps one of its two links to group 1.
    cut = without_links(trunked, [next(x.name for x in trunked.links if x.b in ("s3", "s4"))])
    assert make_plan(cut, "auto").engine == "updown"
    checked = CheckedPlan(make_plan(cut, engine))
    assert checked.verdict.acyclic
    assert checked.verdict.undelivered == 0
    single = load("dragonfly,a=2,h=1,p=1")
    with pytest.raises(PlanError, match=f"{engine} has no path from s1 to s2 on .*updown runs"):
        make_plan(without_links(single, ["s1-s2"]), engine)


@pytest.mark.parametrize(
    ("spec", "engine", "tables"),
    [
        ("dragonfly,a=4,h=2,p=3", "dragonfly", 1),
        ("dragonfly,a=4,h=2,p=3,g=5", "dragonfly", 3),
        ("dragonflyplus,l=2,s=2,h=2,p=2", "dragonflyplus", 2),
        ("hyperx,S=3x4,hosts=3", "hyperx", 1),
        ("hyperx,S=3x4,K=2,hosts=3", "hyperx", 3),
    ],
)
def test_tables_hold_the_balanced_paths(spec: str, engine: str, tables: int) -> None:
    """One table if there is one shortest path between any two switches, else one for each rank."""
    fabric = load(spec)
    select: Selection
    for select in ("spread", "low-port"):
        plan = make_plan(fabric, engine, select=select)
        assert isinstance(plan.routes, TableRoutes)
        assert len(plan.routes.next_hop) == (tables if select == "spread" else 1)
        task = Task(fabric, plan.channels, None, select, None)
        rows, channels, priorities = balanced_paths(task, legal_paths(task, engine))
        ours, theirs = plan.routes.rows, rows.of_host
        assert np.array_equal(plan.routes.channels[ours], channels[theirs])
        assert np.array_equal(plan.routes.priorities[ours], priorities[theirs])


def legal_paths(task: Task, engine: str) -> StateGraph:
    """Return the state graph of a minimal engine, written down once more."""
    channels, kind = task.channels, []
    for tail, head in zip(channels.tail.tolist(), channels.head.tolist(), strict=True):
        if engine == "hyperx":  # S=3x4
            kind.append(int(tail // 3 != head // 3))
        elif engine == "dragonfly":  # a=4
            kind.append(int(tail // 4 != head // 4))
        else:  # l=2, s=2 and 5 groups: leaves before spines
            leaf = [switch < 10 for switch in (tail, head)]
            kind.append(0 if leaf[0] else 2 if leaf[1] else 1)
    phases = {
        "hyperx": Phases.from_steps([(0, 0, 1), (0, 1, 2), (1, 1, 2)], priority=[0, 0, 0]),
        "dragonfly": Phases.from_steps(
            [(0, 0, 1), (0, 1, 2), (1, 1, 2), (2, 0, 3)], priority=[0, 0, 0, 1]
        ),
        "dragonflyplus": Phases.from_steps(
            [(0, 0, 1), (1, 1, 2), (1, 2, 3), (2, 2, 3)], priority=[0, 0, 0, 0]
        ),
    }
    return phases[engine].graph(channels, np.array(kind, dtype=np.int32))


@pytest.mark.parametrize("select", ["spread", "low-port"])
def test_paths_that_tables_cannot_hold_are_written_out(select: Selection) -> None:
    """Paths from s4 and s6 to one switch part at a switch of their group."""
    damaged = without_links(load("dragonfly,a=3,h=3,p=1,g=5"), ["s4:2-s5:2"])
    damaged = replace(damaged, hosts=tuple(h for h in damaged.hosts if h.switch != "s5"))
    plan = make_plan(damaged, "dragonfly", select=select)
    assert isinstance(plan.routes, ExplicitRoutes)
    assert plan.vlan_count == 2
    verdict = CheckedPlan(plan).rules_verdict
    assert (verdict.acyclic, verdict.undelivered, hops(plan)) == (True, 0, 3)


def test_a_dragonfly_is_planned_without_writing_out_its_paths() -> None:
    plan = make_plan(load("dragonfly,a=8,h=4,p=4"), "dragonfly")
    verdict = CheckedPlan(plan).verdict
    assert isinstance(plan.routes, TableRoutes)
    assert "_paths" not in vars(plan.routes), "not written out"
    assert (len(plan.routes.switch), plan.vlan_count, plan.vcs) == (264, 1, 2)
    assert (verdict.acyclic, verdict.undelivered) == (True, 0)
    # A turn from a global to a local channel for each of them: 4 and 7 at each switch.
    assert len(plan.routes.changes) == 264 * 4 * 7


def test_engines_of_a_family_refuse_others_and_unknown_fabrics() -> None:
    renamed = from_json({**to_json(load("dragonfly,a=2,h=1,p=1")), "name": "mine"})
    for engine, spec in [
        ("dragonfly", "torus,4,4"),
        ("dragonfly-valiant", "dragonflyplus,l=2,s=2,h=1,p=1"),
        ("dragonflyplus", "dragonfly,a=2,h=1,p=1"),
        ("hyperx", "slimfly,3"),
        ("dimwar", "mesh,2,2"),
        ("cube", "torus,4,4,8"),
    ]:
        with pytest.raises(PlanError, match=f"{engine} needs a fabric of the family"):
            make_plan(load(spec), engine)
    with pytest.raises(PlanError, match="dragonfly needs a fabric of the family dragonfly, which"):
        make_plan(renamed, "dragonfly")
    with pytest.raises(PlanError, match="valiant needs 12 virtual channels on mesh,4,4, twice the"):
        make_plan(load("mesh,4,4"), "valiant")
    cut = without_links(load("cube,4x4x4"), ["s1-s2"])
    with pytest.raises(PlanError, match="cube needs all switches and links"):
        make_plan(cut, "cube")


def test_valiant_passes_no_switch_twice() -> None:
    plan = make_plan(load("polarfly,3,hosts=2"), "valiant")
    head = plan.channels.head
    for row in range(len(plan.row_switch)):
        for target in range(len(plan.channels.names)):
            path = [int(head[c]) for c, _ in plan.routes.path(row, target)]
            assert len({int(plan.row_switch[row]), *path}) == len(path) + 1
