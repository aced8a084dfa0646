"""Dragonfly, Dragonfly+, HyperX, Slim Fly, PolarFly, rails, Clos and cubes, as their papers say."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from knotless.base.errors import FabricError, SpecError
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.state_graph import plain_graph
from knotless.topologies import Fabric, load
from knotless.topologies.failures import without_links
from knotless.topologies.families.slimfly import generator_sets
from knotless.topologies.formats.files import from_json, to_json
from knotless.topologies.layout import place_switches
from knotless.topologies.math.field import field, powers, prime_power
from knotless.topologies.spec import member_and_numbers, parse

PRIME_POWERS = [q for q in range(2, 14) if prime_power(q)]


def hops(fabric: Fabric) -> np.ndarray:  # type: ignore[type-arg]
    return plain_graph(channels_of(fabric)).hops()


def degrees(fabric: Fabric) -> Counter[int]:
    return Counter(len(ports) for ports in fabric.neighbours.values())


def ends(fabric: Fabric) -> list[tuple[int, int]]:
    index = fabric.switch_index
    return [(index[link.a], index[link.b]) for link in fabric.links]


@pytest.mark.parametrize(("a", "h", "p"), [(4, 2, 2), (2, 1, 1), (6, 3, 3), (3, 2, 1), (8, 4, 4)])
def test_whole_dragonflies_have_one_link_between_groups_and_diameter_3(
    a: int, h: int, p: int
) -> None:
    fabric = load(f"dragonfly,a={a},h={h},p={p}")
    groups = a * h + 1
    assert (len(fabric.switches), len(fabric.hosts)) == (a * groups, a * p * groups)
    assert degrees(fabric) == {a - 1 + h: a * groups}
    between = Counter((x // a, y // a) for x, y in ends(fabric))
    assert all(between[pair] == 1 for pair in combinations(range(groups), 2))
    assert hops(fabric).max() == 3


@pytest.mark.parametrize(
    "spec",
    [
        *(f"dragonfly,a=4,h=2,p=1,g={groups}" for groups in range(2, 10)),
        *(f"dragonflyplus,l=4,s=4,h=2,p=1,g={groups}" for groups in range(2, 10)),
    ],
)
def test_spare_global_ports_make_even_trunks(spec: str) -> None:
    fabric = load(spec)
    groups = int(spec.rpartition("=")[2])
    first = 0 if spec.startswith("dragonfly,") else 4 * groups
    group = [(i - first) // 4 if i >= first else i // 4 for i in range(len(fabric.switches))]
    between = Counter(
        tuple(sorted((group[x], group[y]))) for x, y in ends(fabric) if group[x] != group[y]
    )
    assert len(between) == groups * (groups - 1) // 2
    assert max(between.values()) - min(between.values()) <= 1
    used = Counter(g for pair, count in between.items() for g in pair for _ in range(count))
    assert set(used.values()) <= {7, 8}, "all global ports of a group but one at most"


def test_dragonfly_ports_are_those_of_hosts_of_the_group_and_global_ones() -> None:
    fabric = load("dragonfly,a=4,h=2,p=2")
    assert list(fabric.hosts_at["s2"]) == [1, 2]
    assert [peer for peer, _ in fabric.neighbours["s2"].values()] == [
        "s1",
        "s3",
        "s4",
        "s15",
        "s19",
    ]
    # Global ports 2 and 3 of group 0 lead to groups 3 and 4, at their ports 5 and 4.
    assert fabric.neighbours["s2"][6] == ("s15", 7)
    assert fabric.neighbours["s2"][7] == ("s19", 6)


def test_dragonfly_plus_is_bipartite_in_groups() -> None:
    fabric = load("dragonflyplus,l=4,s=4,h=4,p=4")
    groups = 17
    assert len(fabric.switches) == 8 * groups
    assert degrees(fabric) == {4: 4 * groups, 8: 4 * groups}
    leaves = 4 * groups
    assert all(y >= leaves for _, y in ends(fabric)), "no link between leaves"
    assert all(bool(hosts) is (int(name[1:]) <= leaves) for name, hosts in fabric.hosts_at.items())
    assert hops(fabric)[:leaves, :leaves].max() == 3


@pytest.mark.parametrize(
    ("spec", "dims", "parallel"),
    [
        ("hyperx,S=4x4x4", (4, 4, 4), (1, 1, 1)),
        ("hyperx,5x3,K=2", (5, 3), (2, 2)),
        ("hyperx,S=2x3x4,K=3x1x2", (2, 3, 4), (3, 1, 2)),
        ("fullmesh,7,K=2", (7,), (2,)),
    ],
)
def test_hyperx_links_switches_that_differ_in_one_coordinate(
    spec: str, dims: tuple[int, ...], parallel: tuple[int, ...]
) -> None:
    fabric = load(spec)
    places = list(zip(*np.unravel_index(range(len(fabric.switches)), dims, order="F"), strict=True))
    count = Counter(ends(fabric))
    for x, y in combinations(range(len(places)), 2):
        differ = [d for d in range(len(dims)) if places[x][d] != places[y][d]]
        assert count[x, y] == (parallel[differ[0]] if len(differ) == 1 else 0)
    assert hops(fabric).max() == len(dims)


@pytest.mark.parametrize("q", PRIME_POWERS[1:])
def test_slim_flies_have_the_degree_and_diameter_of_their_paper(q: int) -> None:
    fabric = load(f"slimfly,{q},hosts=1")
    d = {0: 0, 1: 1, 3: -1}[q % 4]
    assert len(fabric.switches) == 2 * q * q
    assert degrees(fabric) == {(3 * q - d) // 2: 2 * q * q}
    assert hops(fabric).max() == 2
    gf = field(q)
    for generators in generator_sets(q):
        assert len(set(generators)) == len(generators) == (q - d) // 2
        assert {gf.negative[x] for x in generators} == set(generators)


def test_the_slim_fly_of_order_5_is_the_hoffman_singleton_graph() -> None:
    fabric = load("slimfly,5")
    assert len(fabric.hosts) == 4 * 50
    # 50 vertices of degree 7 with diameter 2: the Moore bound, so one path for each pair.
    assert len(fabric.switches) == 1 + 7 + 7 * 6


@pytest.mark.parametrize("q", PRIME_POWERS)
def test_polarflies_have_the_degree_and_diameter_of_their_paper(q: int) -> None:
    fabric = load(f"polarfly,{q},hosts=1")
    assert len(fabric.switches) == q * q + q + 1
    assert degrees(fabric) == {q: q + 1, q + 1: q * q}
    assert hops(fabric).max() == 2
    assert len(fabric.hosts) == len(fabric.switches)


@pytest.mark.parametrize("order", PRIME_POWERS)
def test_powers_of_a_primitive_element_are_all_elements_but_0(order: int) -> None:
    assert sorted(powers(order)) == list(range(1, order))


def test_rails_connect_each_server_by_all_its_interfaces() -> None:
    fabric = load("rail,5,3,2,unit=2")
    by_server: dict[str | None, list[int]] = {}
    for host in fabric.hosts:
        by_server.setdefault(host.server, []).append(fabric.switch_index[host.switch] % 3)
    assert {name: sorted(rails) for name, rails in by_server.items()} == {
        f"server{i}": [0, 1, 2] for i in range(1, 6)
    }
    units = {h.server: fabric.switch_index[h.switch] // 3 for h in fabric.hosts}
    assert units == {f"server{i + 1}": i // 2 for i in range(5)}
    assert [len(fabric.neighbours[name]) for name in ("s1", "s9", "s10", "s11")] == [2, 2, 9, 9]


def test_the_server_of_a_host_is_kept_in_files_and_checked() -> None:
    fabric = load("rail,2,2,1")
    values = to_json(fabric)
    assert from_json(values) == fabric
    hosts = values["hosts"]
    assert isinstance(hosts, list)
    assert hosts[0]["server"] == "server1"
    assert "server" not in to_json(load("ring,3"))["hosts"][0]  # type: ignore[index]
    hosts[0]["server"] = "a b"
    with pytest.raises(FabricError, match="host h1: server 'a b' must be 1 to 63 letters"):
        from_json(values)
    hosts[0]["server"] = 7
    with pytest.raises(FabricError, match="server must be text, not 7"):
        from_json(values)


@pytest.mark.parametrize(("radix", "over"), [(8, 1), (8, 3), (6, 2), (12, 2), (4, 1)])
def test_clos_switches_have_no_more_ports_than_the_radix(radix: int, over: int) -> None:
    fabric = load(f"clos3,{radix},over={over}")
    used = {
        name: len(fabric.neighbours[name]) + len(fabric.hosts_at[name])
        for name in fabric.switch_index
    }
    assert set(used.values()) == {radix}
    leaves = [name for name, hosts in fabric.hosts_at.items() if hosts]
    assert len(leaves) == radix * radix // 2
    for leaf in leaves:
        assert len(fabric.hosts_at[leaf]) == over * len(fabric.neighbours[leaf])


def test_clos_without_over_subscription_is_the_fat_tree_of_three_levels() -> None:
    assert load("clos3,4").links == load("fattree3,4").links


def test_cubes_without_a_twist_are_tori() -> None:
    assert load("cube,4x4x8").links == load("torus,4,4,8").links
    assert load("cube,4x4x8").grid == load("torus,4,4,8").grid


@pytest.mark.parametrize(("shape", "before", "after"), [("4x4x8", 8, 6), ("4x8x8", 10, 6)])
def test_a_twist_shortens_paths_and_keeps_the_fabric_symmetric(
    shape: str, before: int, after: int
) -> None:
    plain, twisted = hops(load(f"cube,{shape}")), hops(load(f"cube,{shape},twist"))
    assert (plain.max(), twisted.max()) == (before, after)
    assert twisted.mean() < plain.mean()
    first = sorted(twisted[0].tolist())
    assert all(sorted(row.tolist()) == first for row in twisted), "the same from every switch"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dragonfly", "dragonfly: a, h, p must be given: dragonfly,a=A,h=H,p=P[,g=G]"),
        ("dragonfly,a=4,h=2", "p must be given"),
        ("dragonfly,a=4,h=0,p=1", "h must be at least 1"),
        ("dragonfly,a=4,h=2,p=1,g=10", "g must be 2 to 9, one more than the global ports"),
        ("dragonfly,a=4,h=2,p=1,g=1", "g must be 2 to 9"),
        ("dragonfly,a=4,h=2,p=0", "p must be 1 to 254 a switch, not 0"),
        ("dragonfly,a=4,h=2,p=1,hosts=2", "dragonfly has no option 'hosts'; it has p, rate"),
        ("dragonfly,4,a=4,h=2,p=1", "dragonfly takes 0 sizes"),
        ("dragonfly,a=999999,h=999999,p=1", "switches are too many"),
        ("dragonflyplus,l=2,s=0,h=2,p=1", "s must be at least 1"),
        ("hyperx", "the sizes are missing or given twice; write hyperx,S="),
        ("hyperx,S=4x4,4x4", "the sizes are missing or given twice"),
        ("hyperx,S=4xx4", "size must be a whole number, not ''"),
        ("hyperx,S=4x1", "a size must be at least 2, not 1"),
        ("hyperx,S=4x4,K=1x2x3", "K must have 2 numbers or one, not 3"),
        ("hyperx,S=4x4,K=0", "K must be at least 1, not 0"),
        ("hyperx,S=99x99x99x99", "switches are too many"),
        ("fullmesh,1", "a size must be at least 2"),
        ("slimfly,6", "q must be a power of a prime from 3 (3, 4, 5, 7, 8, 9, 11..), not 6"),
        ("slimfly,2", "q must be a power of a prime from 3"),
        ("slimfly,99999", "switches are too many"),
        ("polarfly,6", "q must be a power of a prime (2, 3, 4, 5, 7, 8, 9, 11..), not 6"),
        ("rail,4,2,2,unit=255", "unit must be 1 to 254, not 255"),
        ("rail,4,2,2,links=0", "links must be at least 1"),
        ("clos3,7", "the radix must be even and a multiple of over + 1; 7 is not with over=1"),
        ("clos3,8,over=2", "8 is not with over=2"),
        ("clos3,8,pods=9", "pods must be 2 to the radix, 8, not 9"),
        ("cube,4x4", "cube takes 3 sizes (cube,XxYxZ[,twist]), not 2"),
        ("cube,4x4x6", "sizes must be multiples of 4, as 4x4x8"),
        ("cube,4x4x4,twist", "a twisted shape is KxKx2K or Kx2Kx2K, as 4x4x8 or 4x8x8"),
        ("cube,4x4x8,twist=2", "write twist, or not, instead of twist=2"),
        ("cube,4x4x8,twist,twist", "option twist is given twice"),
        ("torus,4x4", "size must be a whole number, not '4x4'"),
    ],
)
def test_impossible_parameters_are_refused_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        load(spec)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("dragonfly,p=2,h=2,a=4,g=0", "dragonfly,a=4,h=2,p=2"),
        ("hyperx,4x4,K=2x2", "hyperx,S=4x4,K=2"),
        ("hyperx,S=4x4,K=1", "hyperx,S=4x4"),
        ("cube,4x4x8,twist=1", "cube,4x4x8,twist"),
        ("cube,4x4x8,twist=0,hosts=2", "cube,4x4x8,hosts=2"),
        ("slimfly,5,hosts=4", "slimfly,5"),
    ],
)
def test_equal_fabrics_have_one_name(spec: str, canonical: str) -> None:
    assert load(spec).name == canonical
    assert parse(canonical)[1] == parse(spec)[1]
    assert from_json(to_json(load(spec))).family == load(spec).family


def test_a_damaged_fabric_keeps_its_family_by_its_name() -> None:
    fabric = load("dragonfly,a=2,h=1,p=1")
    cut = without_links(fabric, ["s1-s2"])
    assert cut.family is None
    found = member_and_numbers(cut)
    assert found == (fabric.family, list(range(6)))
    values = to_json(cut)
    values["links"] = [*values["links"], {"a": "s1", "a_port": 9, "b": "s4", "b_port": 9}]  # type: ignore[misc]
    assert member_and_numbers(from_json(values)) is None, "a link that the family has not"
    assert member_and_numbers(from_json({**to_json(cut), "name": "mine"})) is None


@pytest.mark.parametrize(
    "spec",
    [
        *("dragonfly,a=4,h=2,p=2", "dragonfly,a=1,h=1,p=1", "dragonflyplus,l=2,s=3,h=1,p=2"),
        *("hyperx,S=4x4", "hyperx,S=3x3x3", "hyperx,S=5", "fullmesh,6", "slimfly,3"),
        *("polarfly,3", "rail,4,2,2", "clos3,4", "cube,4x4x4", "cube,4x4x8,twist"),
    ],
)
def test_switches_are_drawn_apart_from_each_other(spec: str) -> None:
    places = list(place_switches(load(spec)).values())
    nearest = min(np.hypot(a[0] - b[0], a[1] - b[1]) for a, b in combinations(places, 2))
    assert nearest > 0.75
