"""Workloads against theory: a flow alone, flows into one sink, and bounds of collectives."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from knotless.base.errors import SimulationError
from knotless.cli.commands.simulate import command
from knotless.routing.plan import Plan, make_plan
from knotless.simulation import Load, Scenario, simulate
from knotless.simulation.completion import BIN_EDGES, statistics
from knotless.simulation.result import by_message
from knotless.simulation.workload import CollectiveRun
from knotless.topologies import load
from knotless.topologies.fabric import Fabric, Host, Link
from knotless.traffic.collectives import collective_named, side_by_side
from knotless.traffic.fairness import fair_rates
from knotless.traffic.patterns.pattern import pattern_of

P, HEADER, GAP = 1500, 18, 20


def hop_ps(payload: int, rate_mbps: float, *, tagged: bool) -> int:
    wire = max(64, payload + HEADER + (4 if tagged else 0)) + GAP
    return wire * 8 * 10**12 // round(rate_mbps * 1e6)


def alone_ps(lines: list[tuple[float, float]], size: int) -> int:
    """Return the time of a message alone, packet by packet; lines are (Mbit/s, us)."""
    payloads = [P] * (size // P) + ([size % P] if size % P else [])
    arrived = [0] * len(payloads)
    for place, (rate_mbps, delay_us) in enumerate(lines):
        free = 0
        for packet, payload in enumerate(payloads):
            tagged = 0 < place < len(lines) - 1
            free = max(free, arrived[packet]) + hop_ps(payload, rate_mbps, tagged=tagged)
            arrived[packet] = free + round(delay_us * 1e6)
    return arrived[-1]


def uneven() -> Fabric:
    """Return three switches in a row, with lines of different rates and delays."""
    fabric = load("mesh,3,1,rate=1000,delay=1")
    rates = {"h1": 10_000.0, "h2": 1000.0, "h3": 400.0}
    return replace(
        fabric,
        hosts=tuple(replace(host, rate_mbps=rates[host.name]) for host in fabric.hosts),
        links=tuple(
            replace(link, rate_mbps=300.0 + 500 * place, delay_us=2.5 + place)
            for place, link in enumerate(fabric.links)
        ),
    )


@pytest.mark.parametrize("size", [1, 40, 1499, 1500, 1501, 3000, 45_000, 100_001])
@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (2, 0), (1, 2)])
def test_a_flow_alone_takes_the_time_of_the_formula(pair: tuple[int, int], size: int) -> None:
    fabric = uneven()
    plan = make_plan(fabric, "updown")
    between = fabric.links[min(pair) : max(pair)]
    if pair[0] > pair[1]:
        between = between[::-1]
    hosts: list[Link | Host] = [fabric.hosts[pair[0]], *between, fabric.hosts[pair[1]]]
    lines = [(line.rate_mbps, line.delay_us) for line in hosts]
    result = simulate(
        Scenario(
            plan,
            pattern_of("pair", "one", [pair]),
            Load("acknowledged", message_bytes=size),
            completions=True,
        )
    )
    completions = result.completions
    assert completions is not None
    # The acknowledgement is a frame of 64 bytes, tagged between switches.
    back = alone_ps(lines[::-1], 64 - HEADER)
    assert completions.fct_ps.tolist() == [alone_ps(lines, size) + back]
    assert completions.slowdown.tolist() == [1.0]


@pytest.mark.parametrize("flow_control", ["pause", "pfc"])
def test_flows_into_one_sink_end_when_max_min_says(flow_control: str, tmp_path: Path) -> None:
    """Flows of K, 2 K, .., n K bytes share the line: each gets an equal part until it ends."""
    count, unit = 4, 1_500_000
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "time_us,source,destination,bytes\n"
        + "".join(f"0,h{n + 1},h{count + 1},{(n + 1) * unit}\n" for n in range(count))
    )
    plan = make_plan(load(f"flat,{count + 1},rate=10000,delay=1"), "updown")
    result = simulate(
        Scenario(plan, "trace", trace=str(trace), flow_control=flow_control, completions=True)
    )
    goodput_mbps = 10_000 * P / (P + HEADER + GAP)
    left = [unit * (n + 1) for n in range(count)]
    now_us, expected = 0.0, []
    while left:
        hops = [np.zeros(len(left), dtype=np.int32)]
        (rate, *_) = fair_rates(hops, np.array([goodput_mbps]))
        lasts_us = 8 * left[0] / rate
        now_us += lasts_us
        expected.append(now_us)
        left = [size - left[0] for size in left[1:]]
    measured = {row["source"]: row["fct_us"] for row in by_message(result)}
    assert [measured[f"h{n + 1}"] for n in range(count)] == pytest.approx(expected, rel=0.02)
    # The line is never idle: the last flow ends to the packet when it must.
    packets = sum(range(1, count + 1)) * unit // P
    first_ps = hop_ps(P, 10_000, tagged=False) + 2 * 10**6
    whole_ps = first_ps + packets * hop_ps(P, 10_000, tagged=False)
    assert max(measured.values()) == whole_ps / 1e6


def star(hosts: int) -> Plan:
    return make_plan(load(f"flat,{hosts},rate=10000,delay=1"), "updown")


def star_ps(size: int) -> int:
    return alone_ps([(10_000, 1), (10_000, 1)], size)


FORMULAS: dict[str, Callable[[int, int], int]] = {
    "ring-allreduce": lambda n, m: 2 * (n - 1) * star_ps(m // n),
    "reduce-scatter": lambda n, m: (n - 1) * star_ps(m // n),
    "ring-allgather": lambda n, m: (n - 1) * star_ps(m // n),
    "tree-allreduce": lambda n, m: 2 * int(math.log2(n)) * star_ps(m),
    "tree-broadcast": lambda n, m: int(math.log2(n)) * star_ps(m),
    "halving-doubling-allreduce": lambda n, m: 2
    * sum(star_ps(m >> level) for level in range(1, n.bit_length())),
}


@pytest.mark.thin(16)
@pytest.mark.parametrize("hosts", [2, 4, 8, 16])
@pytest.mark.parametrize("size", [64_000, 960_000])
@pytest.mark.parametrize("name", list(FORMULAS))
def test_collectives_on_a_star_take_the_time_of_their_formula(
    name: str, size: int, hosts: int
) -> None:
    values = simulate(Scenario(star(hosts), "uniform", workload=CollectiveRun(name, size)))
    expected_us = FORMULAS[name](hosts, size) / 1e6
    assert values.program_us == expected_us
    assert values.bound_us == expected_us
    assert values.summary()["collective_ratio"] == 1


@pytest.mark.parametrize("hosts", [3, 5, 7])
def test_a_ring_of_any_length_takes_the_time_of_its_formula(hosts: int) -> None:
    size = hosts * 30_000
    run = CollectiveRun("ring-allreduce", size)
    result = simulate(Scenario(star(hosts), "uniform", workload=run))
    assert result.program_us == result.bound_us == 2 * (hosts - 1) * star_ps(30_000) / 1e6


@pytest.mark.parametrize("hosts", [2, 3, 8])
def test_all_to_all_on_a_star_keeps_all_lines_busy(hosts: int) -> None:
    each = 30_000
    run = CollectiveRun("all-to-all", each * hosts)
    result = simulate(Scenario(star(hosts), "uniform", workload=run))
    packet_ps = hop_ps(P, 10_000, tagged=False)
    expected_ps = (hosts - 1) * (each // P) * packet_ps + packet_ps + 2 * 10**6
    assert result.bound_us == expected_ps / 1e6
    assert result.program_us == expected_ps / 1e6


@pytest.mark.parametrize("spec", ["torus,3,3", "fattree3,4", "mesh,4,1,hosts=2"])
@pytest.mark.parametrize("name", [*FORMULAS, "all-to-all"])
def test_no_collective_is_faster_than_its_bound(name: str, spec: str) -> None:
    fabric = load(f"{spec},rate=10000,delay=1")
    hosts = tuple(host.name for host in fabric.hosts[:8])
    run = CollectiveRun(name, 200_000, hosts)
    result = simulate(Scenario(make_plan(fabric, "updown"), "uniform", workload=run))
    assert result.program_us is not None
    assert result.bound_us is not None
    assert result.program_us >= result.bound_us > 0


@pytest.mark.parametrize("name", list(FORMULAS))
def test_rails_work_at_once_each_on_its_part(name: str) -> None:
    """Each rail of one unit is a star, and no two rails share a line."""
    fabric = load("rail,8,4,2,rate=10000,delay=1")
    run = CollectiveRun(name, 960_000, by_rail=True)
    result = simulate(Scenario(make_plan(fabric, "updown"), "uniform", workload=run))
    expected_us = FORMULAS[name](8, 960_000 // 4) / 1e6
    assert result.program_us == result.bound_us == expected_us


def test_an_all_to_all_by_rail_moves_all_that_leaves_servers() -> None:
    fabric = load("rail,4,2,1,rate=10000,delay=1")
    made = CollectiveRun("all-to-all", 80_000, by_rail=True).transfers(fabric)
    # Each of 8 hosts has 10,000 bytes for each of the 6 hosts of other servers.
    assert int(made.bytes.sum()) == 8 * 6 * 10_000
    places = CollectiveRun("all-to-all", 80_000, by_rail=True).places(fabric)
    hosts = [fabric.hosts[place] for place in places.tolist()]
    for source, destination in zip(made.source, made.destination, strict=True):
        one, other = hosts[source], hosts[destination]
        assert one.server != other.server
        assert one.switch == other.switch


@pytest.mark.parametrize("name", [*FORMULAS, "all-to-all"])
def test_groups_side_by_side_do_what_each_does_alone(name: str) -> None:
    one = collective_named(name).make(8, 100_000)
    made = side_by_side(one, 3)
    assert made.ranks == 24
    number = [np.flatnonzero(made.source // 8 == group) for group in range(3)]
    for group, own in enumerate(number):
        assert (made.source[own] - 8 * group == one.source).all()
        assert (made.destination[own] - 8 * group == one.destination).all()
        assert (made.bytes[own] == one.bytes).all()
        mine = np.isin(made.waiting, own)
        pairs = np.stack([made.waiting[mine], made.needed[mine]])
        alone = np.searchsorted(own, pairs)
        assert (own[alone] == pairs).all()
        assert set(zip(*alone.tolist(), strict=True)) == set(
            zip(one.waiting.tolist(), one.needed.tolist(), strict=True)
        )
    # A transfer needs one of an earlier round.
    rounds = np.searchsorted(made.rounds, np.arange(len(made.source)), side="right")
    assert (rounds[made.needed] < rounds[made.waiting]).all()


def test_rails_need_servers_with_equally_many_interfaces() -> None:
    run = CollectiveRun("ring-allreduce", 1000, by_rail=True)
    fabric = load("rail,4,2,1")
    with pytest.raises(SimulationError, match="equally many"):
        run.places(load("ring,4"))
    with pytest.raises(SimulationError, match="equally many"):
        run.places(replace(fabric, hosts=fabric.hosts[:-1]))
    odd = replace(fabric, hosts=(*fabric.hosts[:-1], replace(fabric.hosts[-1], server=None)))
    with pytest.raises(SimulationError, match="equally many"):
        run.places(odd)


def test_percentiles_are_those_of_the_messages_in_out(tmp_path: Path) -> None:
    out = tmp_path / "all.json"
    arguments = ["fattree3,4", "--sizes", "hadoop", "--load", "0.6", "--flows", "997"]
    lines = ["--rate", "10000", "--delay", "1", "--json", "--out", str(out)]
    done = CliRunner().invoke(command, [*arguments, *lines])
    values = json.loads(done.output)
    rows = json.loads(out.read_text())["by_message"]
    assert len(rows) == values["fct_us"]["messages"] == 997

    def check(found: dict[str, float], chosen: list[float]) -> None:
        for name, share in (("p50", 50), ("p95", 95), ("p99", 99), ("max", 100)):
            # The least value that at least this share does not exceed.
            enough = [v for v in chosen if 100 * sum(w <= v for w in chosen) >= share * len(chosen)]
            assert found[name] == pytest.approx(min(enough), abs=1e-6)
        assert found["mean"] == pytest.approx(sum(chosen) / len(chosen), abs=1e-6)

    def value_of(key: str, row: dict[str, float]) -> float:
        return row["fct_us"] / (row["alone_us"] if key == "slowdown" else 1)

    for key in ("fct_us", "slowdown"):
        check(values[key], [value_of(key, row) for row in rows])
        assert sum(each["messages"] for each in values[key]["bins"]) == 997
        for each in values[key]["bins"]:
            above, to = each["above_bytes"], each["to_bytes"] or math.inf
            assert above in BIN_EDGES
            check(each, [value_of(key, row) for row in rows if above < row["bytes"] <= to])
    assert min(row["fct_us"] / row["alone_us"] for row in rows) >= 1


def test_statistics_of_nothing_are_a_number_only() -> None:
    assert statistics(np.zeros(0), 3) == {"messages": 0}
