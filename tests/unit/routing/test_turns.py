"""Sets of turns, layers of turns, and paths that must not visit a switch twice."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from knotless._core import graph as core
from knotless.base.errors import PlanError
from knotless.routing.graphs.channels import Ints, channels_of
from knotless.routing.graphs.layers import shortest_paths
from knotless.routing.graphs.simple_paths import without_revisits
from knotless.routing.graphs.spanning_tree import spanning_tree
from knotless.routing.graphs.state_graph import FAR
from knotless.routing.graphs.task import Task
from knotless.routing.graphs.turns import (
    LEFT_UP,
    RIGHT_DOWN,
    Turns,
    all_turns,
    along_tree,
    grow_acyclic,
    legal_turns,
    turn_graph,
)
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, Host, Link, Switch, load
from knotless.verification.checked_plan import CheckedPlan

SPECS = ["ring,5", "torus,4,4", "mesh,3,4", "random,20,degree=3", "lsft,2"]


def _turns(pairs: list[tuple[int, int]]) -> Turns:
    columns = np.array(sorted(pairs), dtype=np.int32).reshape(-1, 2).T.copy()
    return Turns(columns[0], columns[1])


def is_acyclic(channels: int, turns: Turns) -> bool:
    """Return whether turns between this many channels close no cycle."""
    return core.is_acyclic(channels, turns.before, turns.after)


def test_a_ring_of_turns_is_no_acyclic_set() -> None:
    assert is_acyclic(4, _turns([(0, 1), (1, 2), (2, 3), (0, 3)]))
    assert not is_acyclic(4, _turns([(0, 1), (1, 2), (2, 3), (3, 0)]))


@pytest.mark.seeds(20)
def test_growing_gives_a_largest_set_without_a_cycle(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - seeded on purpose
    nodes = 12
    turns = _turns([(a, b) for a in range(nodes) for b in range(nodes) if rng.random() < 0.3])
    order: Ints = np.array(rng.sample(range(len(turns)), len(turns)), dtype=np.int32)
    taken = grow_acyclic(nodes, turns, order)
    assert is_acyclic(nodes, turns.only(taken))
    for turn in np.nonzero(~taken)[0].tolist():
        more = taken.copy()
        more[turn] = True
        assert not is_acyclic(nodes, turns.only(more))
    # every refused turn closes a cycle with earlier ones
    place = {turn: i for i, turn in enumerate(order.tolist())}
    for turn in np.nonzero(~taken)[0].tolist():
        earlier = np.array([t for t in np.nonzero(taken)[0] if place[t] < place[turn]] + [turn])
        mask = np.zeros(len(turns), dtype=bool)
        mask[earlier] = True
        assert not is_acyclic(nodes, turns.only(mask))


@pytest.mark.parametrize("spec", SPECS)
def test_turns_lead_on_and_never_straight_back(spec: str) -> None:
    channels = channels_of(load(spec))
    turns = all_turns(channels)
    assert (channels.head[turns.before] == channels.tail[turns.after]).all()
    wanted = sum(
        1
        for a in range(len(channels))
        for b in range(len(channels))
        if channels.head[a] == channels.tail[b] and channels.tail[a] != channels.head[b]
    )
    assert len(turns) == wanted


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("into_or_out", [(LEFT_UP, None), (None, RIGHT_DOWN)])
def test_the_turn_model_keeps_the_tree_and_beats_up_down(
    spec: str, into_or_out: tuple[str | None, str | None]
) -> None:
    channels = channels_of(load(spec))
    tree = spanning_tree(channels, 0)
    turns = all_turns(channels)
    legal = legal_turns(tree, turns, *into_or_out)
    assert is_acyclic(len(channels), turns.only(legal))
    assert legal[along_tree(channels, tree.parent, turns)].all()
    up = tree.rises()
    allowed = ~(~up[turns.before] & up[turns.after])
    graph, other = (turn_graph(channels, turns.only(mask)) for mask in (legal, allowed))
    count = len(channels.names)
    mean, mean_up_down = (each.hops().sum() / count**2 for each in (graph, other))
    assert mean <= mean_up_down


@pytest.mark.parametrize("spec", SPECS)
def test_layers_are_acyclic_and_hold_every_pair(spec: str) -> None:
    fabric = load(spec)
    channels = channels_of(fabric)
    paths = shortest_paths(Task(fabric, channels, None, "spread", None))
    to_route = paths.pairs_to_route()
    layers = paths.layers()
    assert to_route.any()
    fit = np.zeros_like(to_route)
    for layer in layers:
        assert is_acyclic(len(channels), paths.turns.only(layer))
        more = paths.fitting(layer) & ~fit
        assert (more & to_route).any(), "a layer for nothing"
        fit |= more
    assert (fit | ~to_route).all()


def test_layers_are_few_where_opensm_needs_many() -> None:
    """OpenSM's lash takes 6 layers for this one; two are enough."""
    assert make_plan(load("torus,8,8"), "lash").vcs == 2


def _roundabout() -> Fabric:
    """s1 to s2 to s5, but s1-s2-s5 is no legal turn; s2-s3-s4-s2 then s5 is; s1-s6-..-s5 is long.

    The shortest legal walk returns to s2; the shortest legal path is by s6, s7, s8, s9.
    """
    pairs = [(1, 2), (2, 5), (2, 3), (3, 4), (4, 2), (1, 6), (6, 7), (7, 8), (8, 9), (9, 5)]
    ports = {i: iter(range(2, 10)) for i in range(1, 10)}
    links = tuple(Link(f"s{a}", next(ports[a]), f"s{b}", next(ports[b])) for a, b in pairs)
    switches = tuple(Switch(f"s{i}", i) for i in range(1, 10))
    hosts = tuple(
        Host(f"h{i}", f"02:00:00:00:{i:02x}:01", f"10.0.{i}.1", f"s{i}", 1) for i in range(1, 10)
    )
    return Fabric("roundabout", switches, hosts, links)


@pytest.mark.parametrize("steps", [20_000, 0])
def test_a_walk_that_comes_back_is_replaced_by_a_path(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knotless.routing.graphs.simple_paths.SEARCH_STEPS", steps)
    fabric = _roundabout()
    channels = channels_of(fabric)
    turns = all_turns(channels)
    ends = list(zip(channels.tail.tolist(), channels.head.tolist(), strict=True))
    number = {end: c for c, end in enumerate(ends)}
    forbidden = {(number[0, 1], number[1, 4]), (number[0, 1], number[1, 3])}
    legal = [
        pair not in forbidden
        for pair in zip(turns.before.tolist(), turns.after.tolist(), strict=True)
    ]
    graph = turn_graph(channels, turns.only(np.array(legal)))
    walk = [number[end] for end in [(0, 1), (1, 2), (2, 3), (3, 1), (1, 4)]]
    assert graph.hops()[4, 0] == len(walk) < FAR
    paths: Ints = np.full((1, 9, 5), -1, dtype=np.int32)
    paths[0, 4] = walk
    paths[0, 2, :2] = walk[:2]
    trees = spanning_tree(channels, 7).from_everywhere()
    replaced = without_revisits(channels, graph, np.array([0], dtype=np.int32), paths, trees)
    taken = [c for c in replaced[0, 4].tolist() if c >= 0]
    assert [channels.tail[c] for c in taken] == [0, 5, 6, 7, 8]
    assert all(channels.head[a] == channels.tail[b] for a, b in pairwise(taken))
    assert replaced[0, 2].tolist()[:3] == [*walk[:2], -1]


@pytest.mark.parametrize(
    ("spec", "engine", "message"),
    [
        ("mesh,3,3", "fattree", "has none from s2 to s1"),
        ("mesh,3,3", "lsft", "has one from s1 to s2"),
        ("fattree3,4", "lsft", "has one from"),
        ("mesh,3,3", "smodk", "on mesh,3,3 its paths close a cycle"),
        ("mesh,6,6", "sbp", "sbp needs 10 virtual channels on mesh,6,6, 8 are allowed"),
    ],
)
def test_fabrics_that_an_engine_cannot_route(spec: str, engine: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make_plan(load(spec), engine)


def test_an_lsft_without_one_of_its_links_is_refused() -> None:
    fabric = load("lsft,2")
    cut = Fabric(fabric.name, fabric.switches, fabric.hosts, fabric.links[1:])
    with pytest.raises(PlanError, match="has 0 between s1 and s2"):
        make_plan(cut, "lsft")
    assert CheckedPlan(make_plan(cut, "dl")).cycle == []


def test_descending_layers_get_shorter_with_more_of_them() -> None:
    means = [
        CheckedPlan(make_plan(load("random,40,degree=3"), "dl", vcs=vcs)).summary()["mean_switches"]
        for vcs in (1, 2, 4)
    ]
    assert means[0] > means[1] >= means[2]  # type: ignore[operator]


def test_reduced_buffer_pools_count_only_where_ways_part() -> None:
    ring = make_plan(load("ring,8"), "sbp-reduced")
    assert ring.vcs == 2
    assert CheckedPlan(ring).cycle == []
    assert make_plan(load("ring,8"), "sbp").vcs == 4
