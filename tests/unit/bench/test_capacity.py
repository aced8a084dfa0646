"""Assumptions of the benchmark of capacity: the pairs, the hops between them, the fair share."""

from __future__ import annotations

from collections import Counter

import pytest

from bench import capacity
from bench.capacity import ROUTING, Measurement, fair_share_mbps, hops, pairs, table_of, torus
from knotless.results.machine import machine
from knotless.routing.plan import make_plan


@pytest.mark.parametrize("each", [1, 4])
def test_no_flows_of_different_switches_share_a_channel(each: int) -> None:
    fabric = torus(each)
    plan = make_plan(fabric, ROUTING)
    names = [host.name for host in fabric.hosts]
    sources: dict[tuple[str, int], set[str]] = {}
    flows: Counter[tuple[str, int]] = Counter()
    for a, b in pairs(fabric):
        for hop in plan.path(names[a], names[b])[:-1]:
            sources.setdefault((hop.switch, hop.out_port), set()).add(fabric.hosts[a].switch)
            flows[hop.switch, hop.out_port] += 1
    assert all(len(switches) == 1 for switches in sources.values())
    assert set(flows.values()) == {each}
    assert hops(fabric) == 4


@pytest.mark.parametrize("each", [1, 4])
def test_every_host_sends_and_receives_once(each: int) -> None:
    flows = pairs(torus(each))
    hosts = list(range(16 * each))
    assert sorted(a for a, _ in flows) == sorted(b for _, b in flows) == hosts
    assert flows[0] == (0, 5 * each)


def test_the_fair_share_is_the_lines_by_the_flows_on_it() -> None:
    assert fair_share_mbps(torus(1), 20) == pytest.approx(20 * 1472 / 1542)
    assert fair_share_mbps(torus(4), 20) == pytest.approx(20 * 1472 / 1542 / 4)


def test_the_summary_takes_only_good_measurements_as_best() -> None:
    def one(rate: float, of_theory: float, stretch: float, valid: bool = True) -> Measurement:
        return Measurement(
            "emulated", 16, rate, 1, 1, of_theory, 1000 * rate, stretch, valid, 0, {}
        )

    summary = capacity.summary([one(10, 1.0, 1.0), one(20, 0.995, 1.04), one(30, 1.0, 1.2)])
    assert summary["emulated_16_highest_rate_mbps"] == 20
    assert summary["emulated_16_hops_per_s"] == 20_000
    assert summary["emulated_16_most_hops_per_s"] == 30_000
    assert not one(10, 0.98, 1.0).good
    assert not one(10, 1.0, 1.0, valid=False).good


def test_the_table_has_every_measurement_and_the_best_ones() -> None:
    cores = {"ovs": 0.5, "emulator": 0.25}
    one = Measurement("emulated", 16, 10, 9.5, 9.5, 1.0, 12_000, 1.01, True, 0, cores)
    run = {"rows": [one.as_json()], "summary": capacity.summary([one]), "machine": machine()}
    lines = table_of(run)
    assert lines[2] == (
        "| emulated | 16 | 10 | 12,000 | 1.000 | 1.01 | 0 | yes | emulator 0.25, ovs 0.50 |"
    )
    assert lines[0].count("|") == lines[1].count("|") == lines[2].count("|")
    assert "- emulated 16 hops per s: 12,000" in lines
