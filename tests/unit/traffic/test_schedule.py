"""All-to-all schedules: the paper's examples, and freedom from contention for every order."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import from_text, to_text
from knotless.traffic.contention import Contention, Lines, contention
from knotless.traffic.schedules.latin_square import latin_square, latin_square_of
from knotless.traffic.schedules.schedule import (
    Schedule,
    ScheduleError,
    first_column,
    shift,
    triple,
    vector_table,
)

LARGE = [pytest.param(order, marks=pytest.mark.long) for order in (16, 17)]
ORDERS = [2, 3, 4, 5, 7, 8, 9, 11, 13]

# Order, and the (k, m) with which a part of its hosts participate: the paper's table 5.
PARTS_OF_TABLE_5 = [
    (3, 3, 3),
    (3, 2, 2),
    (5, 5, 4),
    (5, 3, 3),
    (7, 7, 7),
    (7, 6, 6),
    (7, 4, 4),
    (11, 11, 10),
    (11, 9, 9),
    (11, 6, 6),
    (13, 13, 11),
    (13, 10, 10),
    (13, 7, 7),
    (17, 16, 16),
    (17, 13, 13),
    (17, 9, 9),
]


@cache
def lines_of(spec: str) -> Lines:
    return Lines(make_plan(load(spec), "lsft"))


def measured(spec: str, schedule: Schedule) -> Contention:
    return contention(lines_of(spec), schedule.flows())


def ratio_by_walking(fabric: Fabric, schedule: Schedule) -> Fraction:
    """Return the throughput ratio by counting on the fabric's links."""
    spines_of = {
        host.switch: {neighbour for neighbour, _ in fabric.neighbours[host.switch].values()}
        for host in fabric.hosts
    }
    hosts = [fabric.hosts[i] for i in schedule.hosts.tolist()]
    shares: list[Fraction] = []
    for phase in schedule.phases():
        used: Counter[tuple[str, str]] = Counter()
        paths = []
        for source, to in zip(hosts, phase.tolist(), strict=True):
            target = hosts[to]
            stops = [source.switch]
            if source.switch != target.switch:
                (spine,) = spines_of[source.switch] & spines_of[target.switch]
                stops += [spine, target.switch]
            walked = [source.name, *stops, target.name]
            paths.append(list(pairwise(walked)))
            used.update(paths[-1])
        shares += [Fraction(1, max(used[channel] for channel in path)) for path in paths]
    return sum(shares, Fraction()) / len(shares)


def sends_all_to_all(schedule: Schedule) -> bool:
    """Return whether every phase is a permutation, and each pair of hosts is in one phase."""
    phases = np.stack(list(schedule.phases()))
    every = np.arange(len(schedule.hosts))
    return (
        phases.shape == (len(every), len(every))
        and all(np.array_equal(np.sort(phase), every) for phase in phases)
        and all(np.array_equal(np.sort(sent), every) for sent in phases.T)
    )


@pytest.mark.parametrize("order", [*ORDERS, *LARGE])
def test_triples_are_free_of_contention(order: int) -> None:
    square = latin_square(order, sides=1, hosts=order + 1)
    shared = measured(f"lsft,{order}", triple(square))
    assert (shared.throughput_ratio, shared.max_channel_load) == (1.0, 1)


@pytest.mark.parametrize("order", [order for order in ORDERS if order <= 9])
@pytest.mark.parametrize("sides", [1, 2])
def test_triples_send_all_to_all(order: int, sides: int) -> None:
    square = latin_square(order, sides, hosts=order + 1)
    assert sends_all_to_all(triple(square))


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7])
def test_triples_on_two_sides_are_free_of_contention(order: int) -> None:
    square = latin_square(order, sides=2, hosts=order + 1)
    assert measured(f"lsft,{order},sides=2", triple(square)).max_channel_load == 1


@pytest.mark.thin(6)
@pytest.mark.parametrize(("order", "columns", "hosts"), PARTS_OF_TABLE_5)
def test_parts_of_table_5_are_free_of_contention(order: int, columns: int, hosts: int) -> None:
    square = latin_square(order, sides=1, hosts=order + 1)
    shared = measured(f"lsft,{order}", vector_table(square, columns, hosts))
    assert (shared.throughput_ratio, shared.max_channel_load) == (1.0, 1)


@pytest.mark.parametrize("order", [2, 3, 4, 5, 8, 9])
def test_every_part_is_free_of_contention_and_complete(order: int) -> None:
    square = latin_square(order, sides=1, hosts=order + 1)
    for columns in range(1, order + 1):
        for hosts in range(1, columns + 1):
            schedule = vector_table(square, columns, hosts)
            assert measured(f"lsft,{order}", schedule).max_channel_load == 1
            assert sends_all_to_all(schedule)


def test_the_vector_table_of_the_papers_example() -> None:
    assert first_column(3, 2) == [(None, 1), (None, 2), (0, 1), (1, 1), (2, 1), (None, 0)]
    fabric = load("lsft,3")
    square = latin_square_of(fabric)
    assert square is not None
    schedule = vector_table(square, 2, 2)
    leaves = ["s5", "s8", "s6", "s9", "s7", "s10"]  # P(0,0) P(1,0) P(0,1) P(1,1) P(0,2) P(1,2)
    names = [(fabric.hosts[i].switch, fabric.hosts[i].port) for i in schedule.hosts.tolist()]
    assert names == [(leaf, port) for leaf in leaves for port in (1, 2)]
    phases = [phase.tolist() for phase in schedule.phases()]
    assert phases[:3] == [
        [4, 11, 6, 5, 8, 3, 10, 9, 0, 7, 2, 1],
        [5, 10, 7, 4, 9, 2, 11, 8, 1, 6, 3, 0],
        [8, 1, 10, 3, 0, 5, 2, 7, 4, 9, 6, 11],
    ]


@pytest.mark.parametrize(
    ("order", "ratio"),
    [(2, 0.5646), (3, 0.4342), (5, 0.3019), (7, 0.2323), (11, 0.1589), (13, 0.1372), (17, 0.1078)],
)
def test_shift_has_contention_on_an_lsft(order: int, ratio: float) -> None:
    square = latin_square(order, sides=1, hosts=order + 1)
    shared = measured(f"lsft,{order}", shift(square.leaves * square.hosts))
    assert round(shared.throughput_ratio, 4) == ratio
    assert shared.max_channel_load == order + 1


@pytest.mark.parametrize("spec", ["lsft,2", "lsft,3", "lsft,4", "lsft,3,hosts=2"])
def test_the_measure_agrees_with_walking_the_links(spec: str) -> None:
    fabric = load(spec)
    square = latin_square_of(fabric)
    assert square is not None
    schedules = [shift(len(fabric.hosts)), vector_table(square, 2, 2)]
    if "hosts" not in spec:
        schedules.append(triple(square))
    for schedule in schedules:
        by_walking = ratio_by_walking(fabric, schedule)
        assert measured(spec, schedule).throughput_ratio == pytest.approx(float(by_walking))


def test_contention_is_seen_where_it_is_made() -> None:
    square = latin_square(3, sides=1, hosts=4)
    fair = triple(square)
    crowd = Schedule("crowd", fair.hosts, lambda: iter([np.zeros(52, dtype=np.int32)]))
    shared = measured("lsft,3", crowd)
    # All 52 send to one: 48 of them by the four spines of its leaf.
    assert (shared.max_channel_load, shared.max_host_load) == (12, 52)
    assert shared.throughput_ratio == 1 / 52


def test_shift_sends_k_hosts_ahead() -> None:
    assert [phase.tolist() for phase in shift(3).phases()] == [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    assert sends_all_to_all(shift(10))


def test_an_lsft_is_known_by_its_wiring_and_not_by_its_name_alone() -> None:
    assert latin_square_of(load("clos,4")) is None
    assert latin_square_of(load("lsft,3,rate=40,sides=2")) is not None
    text = to_text(load("lsft,2"))
    assert latin_square_of(from_text(text)) is not None
    assert latin_square_of(from_text(to_text(load("clos,4")).replace("clos,4", "lsft,2"))) is None
    assert latin_square_of(from_text(text.replace('"lsft,2"', '"my fabric"'))) is None


@pytest.mark.parametrize(("columns", "hosts"), [(4, 2), (2, 3), (0, 0), (3, 0)])
def test_a_lattice_that_does_not_fit_is_refused(columns: int, hosts: int) -> None:
    with pytest.raises(ScheduleError, match="needs 1 <= M <= K <= 3"):
        vector_table(latin_square(3, 1, 4), columns, hosts)


def test_schedules_for_unknown_hosts_are_refused() -> None:
    with pytest.raises(ScheduleError, match="each leaf has 1 hosts"):
        vector_table(latin_square(3, 1, 1), 3, 2)
    with pytest.raises(ScheduleError, match="needs 4 hosts on each leaf"):
        triple(latin_square(3, 1, 3))


def test_the_command_prints_hosts_and_phases() -> None:
    result = CliRunner().invoke(main, ["schedule", "lsft,2", "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["hosts"] == [f"h{i}" for i in range(1, 22)]
    assert (printed["kind"], printed["throughput_ratio"]) == ("triple", 1.0)
    assert sorted(map(sorted, printed["phases"])) == [list(range(21))] * 21
    part = CliRunner().invoke(main, ["schedule", "lsft,3", "--lattice", "2,2", "--json"])
    assert json.loads(part.stdout)["phases"][0] == [4, 11, 6, 5, 8, 3, 10, 9, 0, 7, 2, 1]


def test_the_command_shifts_any_fabric() -> None:
    result = CliRunner().invoke(main, ["schedule", "ring,3", "--json"])
    printed = json.loads(result.stdout)
    assert printed["phases"] == [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    assert (printed["engine"], printed["throughput_ratio"]) == ("dor", 1.0)
    table = CliRunner().invoke(main, ["schedule", "lsft,2", "--shift"])
    assert "throughput ratio  0.5646 of 1" in table.stdout
    details = CliRunner().invoke(main, ["schedule", "lsft,2", "--shift", "--details"])
    assert "0.564626" in details.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lsft,3", "--lattice", "2"], "two whole numbers K,M"),
        (["lsft,3", "--lattice", "-1,2"], "two whole numbers K,M"),
        (["lsft,3", "--lattice", "4,2"], "needs 1 <= M <= K <= 3"),
        (["clos,3", "--lattice", "2,2"], "for Latin-square fat-trees"),
        (["lsft,3", "--lattice", "2,2", "--shift"], "exclude each other"),
        (["lsft,3,hosts=2"], "needs 4 hosts"),
        (["lsft,6"], "power of a prime"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(main, ["schedule", *arguments])
    assert result.exit_code == 2
    assert says in result.output
    assert result.output.count("\n") == 1
