"""Random graphs beside topologies A and B of paper 000."""

from __future__ import annotations

import random

import networkx as nx

from knotless.topologies import load
from knotless.topologies.formats.graphs import to_networkx
from knotless_experiments.reproduction import irregular


def test_graphs_are_connected_and_of_the_class() -> None:
    rng = random.Random(1)  # noqa: S311
    for _ in range(50):
        graph = nx.Graph(irregular.drawn(rng))
        assert nx.is_connected(graph)
        assert len(graph) == irregular.SWITCHES
        assert graph.number_of_edges() in irregular.LINKS
        assert max(degree for _, degree in graph.degree) <= irregular.MAX_DEGREE


def test_one_seed_gives_the_same_graphs() -> None:
    first, again = (list(irregular.measured(2, 7)) for _ in range(2))
    assert first == again
    assert sum(row["as_stated"] for row in first) == 2


def test_a_and_b_have_the_properties_of_the_text() -> None:
    for name, paths in (("irregular-a", 1.475), ("irregular-b", 2.375)):
        row = irregular.figures_of(load(name))
        assert row["as_stated"]
        assert row["shortest_paths"] == paths
    assert not irregular.figures_of(load("mesh,4,4,hosts=4"))["as_stated"]  # up*/down* is minimal


def test_shortest_paths_are_those_of_networkx() -> None:
    fabric = load("irregular-b")
    graph = to_networkx(fabric)
    graph = graph.subgraph(switch.name for switch in fabric.switches)
    diameter, paths = irregular._shortest(fabric)
    assert diameter == nx.diameter(graph)
    pairs = [(a, b) for a in graph for b in graph if a != b]
    every = [len(list(nx.all_shortest_paths(graph, a, b))) for a, b in pairs]
    assert paths == sum(every) / len(every)


def test_the_stored_run_has_a_thousand_graphs_and_our_two() -> None:
    run = irregular.stored()
    assert sum(run["columns"]["as_stated"]) == 1000
    assert run["ours"] == {name: irregular.figures_of(load(name)) for name in irregular.OURS}
