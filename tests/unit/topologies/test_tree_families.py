"""Fat-trees, Clos networks, Latin-square fat-trees, irregular and random fabrics."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from knotless.base.errors import SpecError
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.math.plane import lattice_point, lines
from tests.support.graph_measures import (
    Graph,
    graph_of,
    hops_between,
    minimal_paths,
    prefix_hops,
    updown_hops,
)

ORDERS = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17]


def edges(fabric: Fabric) -> list[tuple[int, int]]:
    index = fabric.switch_index
    return [(index[link.a], index[link.b]) for link in fabric.links]


def graph(spec: str) -> Graph:
    fabric = load(spec)
    return graph_of(len(fabric.switches), edges(fabric))


def mean(hops: list[list[int]]) -> float:
    return sum(map(sum, hops)) / (len(hops) * (len(hops) - 1))


def mean_switches(fabric: Fabric) -> float:
    """Return mean switches on a shortest path over ordered host pairs, a host with itself too."""
    hops = hops_between(graph_of(len(fabric.switches), edges(fabric)))
    homes = [fabric.switch_index[host.switch] for host in fabric.hosts]
    return sum(hops[a][b] + 1 for a in homes for b in homes) / len(homes) ** 2


@pytest.mark.parametrize(
    ("spec", "switches", "hosts", "links", "mean_of_paper", "longest"),
    [
        ("fattree,2,4,2", 14, 16, 24, 3.75, 5),
        ("clos,4,hosts=2", 8, 16, 16, 2.25, 3),
    ],
)
def test_table_1_of_the_switch_tagging_paper(
    spec: str, switches: int, hosts: int, links: int, mean_of_paper: float, longest: int
) -> None:
    fabric = load(spec)
    assert (len(fabric.switches), len(fabric.hosts), len(fabric.links)) == (switches, hosts, links)
    assert mean_switches(fabric) == mean_of_paper
    with_hosts = {fabric.switch_index[host.switch] for host in fabric.hosts}
    hops = hops_between(graph(spec))
    assert max(hops[a][b] for a in with_hosts for b in with_hosts) + 1 == longest


@pytest.mark.parametrize(
    "sizes", [(2, 4, 2), (2, 4, 3), (1, 3, 3), (3, 6, 2), (2, 2, 4), (2, 4, 1)]
)
def test_fat_trees_have_the_links_that_their_numbers_say(sizes: tuple[int, int, int]) -> None:
    up, down, levels = sizes
    fabric = load(f"fattree,{up},{down},{levels}")
    counts = [down**levels // up]
    counts += [down ** (levels - j) * up ** (j - 1) for j in range(1, levels + 1)]
    level = [j for j, count in enumerate(counts) for _ in range(count)]
    ups: Counter[int] = Counter()
    downs: Counter[int] = Counter()
    for low, high in edges(fabric):
        assert level[high] == level[low] + 1
        ups[low] += 1
        downs[high] += 1
    assert all(ups[s] == up for s in range(len(level)) if level[s] < levels)
    assert all(downs[s] == down for s in range(len(level)) if level[s] > 0)
    assert len(fabric.hosts) == down**levels
    hops = hops_between(graph(fabric.name))
    leaves = range(counts[0])
    assert max(hops[a][b] for a in leaves for b in leaves) == 2 * (
        levels if up < down else levels - 1
    )


def test_every_leaf_of_a_fat_tree_sees_u_to_the_m_ways_up() -> None:
    fabric = load("fattree,2,4,3")
    ways = Counter({0: 1})
    for low, high in sorted(edges(fabric)):
        ways[high] += ways[low]
    tops = range(len(fabric.switches) - 4, len(fabric.switches))
    assert [ways[top] for top in tops] == [2, 2, 2, 2]


def test_three_level_fat_tree_keeps_pods_apart() -> None:
    hops = hops_between(graph("fattree3,4"))
    assert [hops[0][leaf] for leaf in range(8)] == [0, 2, 4, 4, 4, 4, 4, 4]
    fabric = load("fattree3,4")
    assert all(len(ports) + len(fabric.hosts_at[s]) == 4 for s, ports in fabric.neighbours.items())


@pytest.mark.parametrize("order", ORDERS)
def test_the_projective_plane_has_its_axioms(order: int) -> None:
    plane = lines(order)
    size = order * order + order + 1
    assert len(plane) == size
    assert all(len(set(on_it)) == order + 1 and on_it == sorted(on_it) for on_it in plane)
    joined = Counter(pair for on_it in plane for pair in combinations(on_it, 2))
    assert len(joined) == size * (size - 1) // 2, "two points lie on some line together"
    assert set(joined.values()) == {1}, "and on one only"


def test_points_and_lines_are_numbered_as_in_the_paper() -> None:
    # Order 3: P 0; P(0) P(1) P(2) 1..3; P(c,r) 4 + 3 c + r; lines alike.
    plane = lines(3)
    assert plane[0] == [0, 1, 2, 3]
    assert plane[1 + 2] == [0, 10, 11, 12]
    slope, intercept = 2, 1
    on_it = [lattice_point(3, i, (intercept + slope * i) % 3) for i in range(3)]
    assert plane[lattice_point(3, slope, intercept)] == [1 + slope, *on_it]


def test_ports_of_an_lsft_follow_the_far_switch() -> None:
    fabric = load("lsft,3")
    for switch, ports in fabric.neighbours.items():
        peers = [fabric.switch_index[name] for name, _ in ports.values()]
        assert peers == sorted(peers)
        hosts = list(fabric.hosts_at[switch])
        assert hosts == list(range(1, len(hosts) + 1))
        assert list(ports) == list(range(len(hosts) + 1, len(hosts) + 5))


def test_two_sides_of_an_lsft_are_the_same_plane_twice() -> None:
    one, two = load("lsft,2"), load("lsft,2,sides=2")
    first = [(a, b - 7) for a, b in edges(two) if a < 7]
    second = [(a - 7, b - 7) for a, b in edges(two) if a >= 7]
    assert sorted(first) == sorted(second) == sorted(edges(one))


@pytest.mark.parametrize("spec", ["irregular-a", "irregular-b"])
def test_irregular_fabrics_have_the_published_properties(spec: str) -> None:
    fabric = load(spec)
    assert len(fabric.switches) == 16
    assert all(len(hosts) == 4 for hosts in fabric.hosts_at.values())
    assert max(len(ports) for ports in fabric.neighbours.values()) <= 4
    assert len(set(edges(fabric))) == len(fabric.links)
    hops = hops_between(graph(spec))
    assert max(map(max, hops)) == 6
    assert updown_hops(graph(spec), drops=0) != hops
    assert updown_hops(graph(spec), drops=1) == hops, "minimal with 2 virtual channels"
    assert prefix_hops(graph(spec)) != hops


def test_mesh_is_minimal_under_updown_but_not_under_prefix() -> None:
    mesh = graph("mesh,4,4")
    assert max(map(max, hops_between(mesh))) == 6
    assert updown_hops(mesh, drops=0) == hops_between(mesh)
    assert prefix_hops(mesh) != hops_between(mesh)


def test_b_offers_more_paths_than_a() -> None:
    a, b, mesh = graph("irregular-a"), graph("irregular-b"), graph("mesh,4,4")
    assert minimal_paths(a, hops_between(a)) == pytest.approx(1.475)
    assert minimal_paths(b, hops_between(b)) == pytest.approx(2.375)
    assert mean(hops_between(mesh)) < mean(hops_between(b)) < mean(hops_between(a))
    excess = [mean(updown_hops(g, 0)) - mean(hops_between(g)) for g in (a, b)]
    assert excess[0] > excess[1]


def test_a_random_fabric_is_the_same_everywhere() -> None:
    fabric = load("random,8,degree=3,hosts=1,seed=5")
    assert edges(fabric) == RANDOM_8_3_5
    assert edges(load("random,8,degree=3,hosts=1,seed=6")) != RANDOM_8_3_5


RANDOM_8_3_5 = [
    (0, 1),
    (0, 2),
    (0, 7),
    (1, 5),
    (1, 7),
    (2, 6),
    (2, 7),
    (3, 4),
    (3, 5),
    (3, 6),
    (4, 5),
    (4, 6),
]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("lsft,6", "power of a prime"),
        ("lsft,1", "power of a prime"),
        ("lsft,12", "not 12"),
        ("lsft,3,sides=3", "sides must be 1 or 2"),
        ("lsft,3,hosts=0", "hosts must be 1"),
        ("lsft,181", "switches are too many"),
        ("lsft,101", "hosts are too many"),
        ("fattree,3,4,2", "must divide"),
        ("fattree,2,4", "takes 3 sizes"),
        ("fattree,2,4,99", "levels are too many"),
        ("fattree,2,999999998,32", "are too many"),
        ("fattree3,7", "even"),
        ("clos,2000", "links are too many"),
        ("random,8,degree=8", "degree must be 1 to 7"),
        ("random,7,degree=3", "odd number"),
        ("random,8,degree=1", "degree 1 cannot connect"),
        ("random,8,seed=-1", "seed must be 0"),
        ("irregular-a,16", "takes 0 sizes"),
        ("irregular-c", "did you mean"),
    ],
)
def test_impossible_fabrics_are_reported_in_one_line(spec: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(spec)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
