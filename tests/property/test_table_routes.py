"""Next-hop tables give the same paths, loads, dependencies and VLANs as explicit paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from knotless.base.errors import PlanError
from knotless.base.memory import Cost
from knotless.forwarding.from_plan import state_of_plan
from knotless.routing import path_memory
from knotless.routing.graphs.channels import Channels
from knotless.routing.graphs.state_graph import plain_graph
from knotless.routing.plan import Plan, make_plan
from knotless.routing.routes import TableRoutes
from knotless.routing.vlans.assignment import assign_table_vlans, assign_vlans
from knotless.topologies import Fabric, load
from knotless.verification.checked_plan import CheckedPlan
from tests.support.fabric_strategies import (
    cut,
    dragonflies,
    dragonflies_plus,
    graphs,
    grids,
    hyperxs,
)

Path = list[tuple[int, int]]

TREES = ["fattree,2,4,2", "fattree,2,2,3", "fattree3,4", "lsft,3", "fattree2,4,hosts=3"]
FABRICS = {
    "dor": grids(),
    "prefix": graphs(),
    "fattree": st.sampled_from(TREES).map(load),
    "dragonfly": st.one_of(dragonflies(), cut(dragonflies())),
    "dragonflyplus": st.one_of(dragonflies_plus(), cut(dragonflies_plus())),
    "hyperx": st.one_of(hyperxs(), cut(hyperxs())),
}


@st.composite
def thinned(draw: st.DrawFn, fabrics: st.SearchStrategy[Fabric]) -> Fabric:
    """The fabric with some of its hosts only."""
    fabric = draw(fabrics)
    kept = draw(st.lists(st.sampled_from(fabric.hosts), min_size=1, unique_by=lambda h: h.name))
    return replace(fabric, hosts=tuple(host for host in fabric.hosts if host in kept))


def plan_or_skip(fabric: Fabric, engine: str, select: str) -> Plan:
    """Return the plan; fabrics without some hosts or links may have no paths, or not as tables."""
    try:
        plan = make_plan(fabric, engine, select=select)
    except PlanError:
        reject()
    if not isinstance(plan.routes, TableRoutes):
        reject()
    return plan


def tables_of(plan: Plan) -> TableRoutes:
    assert isinstance(plan.routes, TableRoutes)
    return plan.routes


@pytest.mark.thin(2)
@pytest.mark.parametrize("engine", FABRICS)
@given(data=st.data())
def test_tables_and_explicit_paths_give_equal_results(engine: str, data: st.DataObject) -> None:
    fabric = data.draw(thinned(FABRICS[engine]))
    select = data.draw(st.sampled_from(["spread", "low-port"]))
    plan = plan_or_skip(fabric, engine, select)
    tables = tables_of(plan)
    paths = tables.written_out()
    assert tables.vcs == paths.vcs
    for row in range(len(tables.switch)):
        for destination in range(len(fabric.switches)):
            assert tables.path(row, destination) == paths.path(row, destination)
    of_tables, of_paths = (state_of_plan(replace(plan, routes=each)) for each in (tables, paths))
    assert of_tables.difference(of_paths) == ""
    assert of_paths.difference(of_tables) == ""
    assert np.array_equal(of_tables.loads, of_paths.loads)
    receives = plan.receivers > 0
    used = np.where(receives[None, :, None], paths.channels, np.int32(-1))
    for tagging in ("switch", "host"):
        assert np.array_equal(
            assign_table_vlans(tables, receives, tagging=tagging),
            assign_vlans(plan.channels, used, tagging=tagging),
        )


@pytest.mark.thin(2)
@pytest.mark.parametrize("engine", FABRICS)
@given(data=st.data())
def test_changes_of_priority_are_just_those_of_paths(engine: str, data: st.DataObject) -> None:
    plan = plan_or_skip(data.draw(thinned(FABRICS[engine])), engine, "spread")
    paths, priorities = plan.routes.channels, plan.routes.priorities
    met = set()
    for row, destination, hop in np.argwhere(paths[:, :, 1:] >= 0).tolist():
        before, after = priorities[row, destination, hop : hop + 2].tolist()
        if before != after:
            met.add((*paths[row, destination, hop : hop + 2].tolist(), before, after))
    assert sorted(met) == sorted(map(tuple, tables_of(plan).changes.tolist()))


@given(
    fabric=thinned(grids()),
    select=st.sampled_from(["spread", "low-port"]),
    vcs=st.sampled_from([None, 1]),
)
def test_dimension_order_goes_round_each_ring_the_short_way(
    fabric: Fabric, select: str, vcs: int | None
) -> None:
    plan = make_plan(fabric, "dor", select=select, vcs=vcs)
    routes = plan.routes
    for host, row in enumerate(routes.rows.tolist()):
        home = fabric.hosts[host].switch
        ranks = sorted(other.port for other in fabric.hosts if other.switch == home)
        parity = ranks.index(fabric.hosts[host].port) if select == "spread" else None
        for destination in range(len(fabric.switches)):
            source = fabric.switch_index[home]
            expected = dimension_order(fabric, plan.channels, source, destination, parity)
            if vcs == 1:
                expected = [(channel, 0) for channel, _ in expected]
            assert routes.path(row, destination) == expected


def dimension_order(
    fabric: Fabric, channels: Channels, source: int, destination: int, parity: int | None
) -> Path:
    """Follow the grid hop by hop; with ``parity`` None, ties go in the positive direction."""
    grid = fabric.grid
    assert grid is not None
    path, here, stride = [], source, 1
    for size in grid.dims:
        start, x, to = here // stride % size, here // stride % size, destination // stride % size
        step = 1 if to > x else -1
        if grid.wrap and size > 2:
            ahead = (to - x) % size
            tie = 1 if parity is None or (start + parity) % 2 == 0 else -1
            step = tie if 2 * ahead == size else 1 if 2 * ahead < size else -1
        crossed = False
        while x != to:
            beyond = (x + step) % size
            there = here + (beyond - x) * stride
            (channel, *_) = np.flatnonzero((channels.tail == here) & (channels.head == there))
            path.append((int(channel), int(crossed)))
            crossed |= beyond != x + step
            x, here = beyond, there
        stride *= size
    return path


@pytest.mark.parametrize("spec", TREES)
@pytest.mark.parametrize("select", ["spread", "low-port"])
def test_fat_trees_count_ways_by_the_digits_of_the_destination(spec: str, select: str) -> None:
    plan = make_plan(load(spec), "fattree", select=select)
    leaves = np.flatnonzero(plan.receivers).tolist()
    ranks = int(plan.receivers.max())
    tables = tables_of(plan)
    for row, (leaf, rank) in enumerate(
        zip(tables.switch.tolist(), tables.table.tolist(), strict=True)
    ):
        for number, destination in enumerate(leaves):
            expected = d_mod_k(plan.channels, leaves, leaf, destination, number * ranks + rank)
            assert [channel for channel, _ in plan.routes.path(row, destination)] == expected


def d_mod_k(
    channels: Channels, leaves: list[int], source: int, destination: int, number: int
) -> list[int]:
    """Go up by the digits of ``number`` until a path leads down, then down by the same digits."""
    level = distances(channels, leaves)
    below = distances(channels, [destination], level)
    above: dict[int, int] = {}  # the fewest hops by going up, then down
    for switch in sorted(range(len(level)), key=lambda switch: -level[switch]):
        beyond = [above[head] + 1 for _, head in rising(channels, level, switch)]
        above[switch] = min([below[switch], *beyond])
    divisors = [1]
    for below_top in range(max(level)):
        fans = [
            len(rising(channels, level, s)) for s, label in enumerate(level) if label == below_top
        ]
        divisors.append(divisors[-1] * max(fans))
    path, here = [], source
    while here != destination:
        if below[here] == above[here]:
            digit = max(0, level[here] - 2)
            ways = [hop for hop in leaving(channels, here) if below[hop[1]] < below[here]]
        else:
            digit = level[here]
            up = rising(channels, level, here)
            ways = [hop for hop in up if above[hop[1]] < above[here]]
        channel, here = ways[number // divisors[digit] % len(ways)]
        path.append(channel)
    return path


def leaving(channels: Channels, switch: int) -> Iterator[tuple[int, int]]:
    for channel in np.flatnonzero(channels.tail == switch).tolist():
        yield channel, int(channels.head[channel])


def rising(channels: Channels, level: list[int], switch: int) -> list[tuple[int, int]]:
    return [hop for hop in leaving(channels, switch) if level[hop[1]] > level[switch]]


def distances(channels: Channels, to: list[int], level: list[int] | None = None) -> list[int]:
    """Return the hops from each switch going down in ``level``; 1,000 if there is no path."""
    hops = [1000] * len(channels.names)
    queue = deque(to)
    for switch in to:
        hops[switch] = 0
    while queue:
        switch = queue.popleft()
        for _, peer in leaving(channels, switch):
            if hops[peer] == 1000 and (level is None or level[peer] > level[switch]):
                hops[peer] = hops[switch] + 1
                queue.append(peer)
    return hops


@given(thinned(graphs()))
def test_hops_of_shortest_paths_are_summed_without_a_matrix(fabric: Fabric) -> None:
    plan = make_plan(fabric, "minimal")
    pairs = plan.receivers[:, None].astype(np.int64) * plan.receivers[None, :]
    total = plan.channels.core.total_hops(plan.receivers, plan.receivers)
    assert total == (pairs * plain_graph(plan.channels).hops()).sum()
    assert CheckedPlan(plan).is_minimal


def test_paths_that_need_too_much_memory_are_not_written_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan(load("torus,4,4,4"), "dor")
    monkeypatch.setattr(path_memory, "SMALL_BYTES", 0)
    monkeypatch.setattr(path_memory, "free_bytes", lambda: Cost.HOP.bytes_for(64 * 64 * 6) - 1)
    with pytest.raises(PlanError, match="from 64 sources to 64 switches, of up to 6 channels"):
        _ = plan.routes.channels
    assert (CheckedPlan(plan).loads == 64 * 64 * 3 / 384).all()
    monkeypatch.setattr(path_memory, "free_bytes", lambda: Cost.HOP.bytes_for(64 * 64 * 6))
    assert plan.routes.channels.shape == (64, 64, 6)
