"""Loads, fair rates and throughput ratios of traffic patterns, against plain counting."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from knotless.cli.main import main
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.topologies.formats.files import from_json, to_json
from knotless.traffic.analysis import rounded
from knotless.traffic.contention import Lines, contention
from knotless.traffic.fairness import fair_rates
from knotless.traffic.patterns import pattern_named

CASES = [
    ("torus,4,4,hosts=2", "dor", "permutation"),
    ("mesh,4,4", "updown", "uniform"),
    ("random,16,degree=3,hosts=2,seed=2", "dl", "complement"),
    ("lsft,2", "lsft", "shift:5"),
    ("flat,5", "updown", "uniform"),
]


def walked(plan: Plan, flows: list[tuple[int, int]]) -> list[list[str]]:
    """Return the channels of each flow, from the plan's paths."""
    paths = []
    for source, to in flows:
        a, b = plan.fabric.hosts[source].name, plan.fabric.hosts[to].name
        paths.append([a, *(f"{hop.switch}:{hop.out_port}" for hop in plan.path(a, b))])
    return paths


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, ["analyse", *arguments])


@pytest.mark.parametrize(("spec", "engine", "pattern"), CASES)
def test_loads_and_ratio_agree_with_counting(spec: str, engine: str, pattern: str) -> None:
    fabric = load(spec)
    plan = make_plan(fabric, engine)
    flows = pattern_named(pattern).flows(fabric, seed=7)
    paths = walked(plan, flows)
    loads = Counter(channel for path in paths for channel in path)
    lines = Lines(plan)
    shared = contention(lines, pattern_named(pattern).phases(fabric, seed=7))
    counted = dict(zip(lines.names(), shared.peaks.tolist(), strict=True))
    assert {name: load for name, load in counted.items() if load} == loads
    shares = [1 / max(loads[channel] for channel in path) for path in paths]
    assert shared.throughput_ratio == pytest.approx(sum(shares) / len(shares))
    assert shared.flows == len(flows)


@pytest.mark.parametrize(("spec", "engine", "pattern"), CASES)
def test_fair_rates_agree_with_filling_flow_by_flow(spec: str, engine: str, pattern: str) -> None:
    text = to_json(load(spec))
    for field in ("hosts", "links"):
        parts = text[field]
        assert isinstance(parts, list)
        for number, part in enumerate(parts):
            part["rate_mbps"] = 10.0 + number % 4
    fabric = from_json(text)
    lines = Lines(make_plan(fabric, engine))
    (flows,) = pattern_named(pattern).phases(fabric, seed=7)
    capacity = dict(zip(lines.names(), lines.rates_mbps().tolist(), strict=True))
    pairs = [(a, b) for a, b in flows.tolist()]
    paths = walked(lines.plan, pairs)
    ones = [dict.fromkeys(path, 1.0) for path in paths]
    hops = lines.channels_of(flows)
    assert fair_rates(hops, lines.rates_mbps()) == pytest.approx(filled(ones, capacity))
    # Channels that carry 1, 1.5 or 2 units for each unit of a flow, by their numbers.
    weights = [(1 + hop % 3 / 2).astype(np.float64) for hop in hops]
    place = {name: place for place, name in enumerate(lines.names())}
    weighted = [{name: 1 + place[name] % 3 / 2 for name in path} for path in paths]
    rates = fair_rates(hops, lines.rates_mbps(), weights)
    assert rates == pytest.approx(filled(weighted, capacity))


def filled(loads: list[dict[str, float]], capacity: dict[str, float]) -> list[float]:
    """Return fair rates: all rise together, and a flow stops when one of its channels is full."""
    left, rates, rising = dict(capacity), [0.0] * len(loads), set(range(len(loads)))
    while rising:
        used = Counter[str]()
        for flow in rising:
            used.update(loads[flow])
        step = min(left[channel] / wanted for channel, wanted in used.items())
        for channel, wanted in used.items():
            left[channel] -= step * wanted
        full = {channel for channel in used if left[channel] <= 1e-9 * capacity[channel]}
        for flow in list(rising):
            rates[flow] += step
            if full & loads[flow].keys():
                rising.remove(flow)
    return rates


def test_fair_rates_rise_until_a_channel_is_full() -> None:
    # One long flow over both channels, one short flow on each; the second channel is wider.
    first, second = np.array([0, 0, 1], dtype=np.int32), np.array([1, 2, 2], dtype=np.int32)
    assert fair_rates([first, second], np.array([10.0, 30.0])) == pytest.approx([5, 5, 25])


def test_a_flow_without_a_channel_is_refused() -> None:
    with pytest.raises(ValueError, match="no channel"):
        fair_rates([np.array([0, 1], dtype=np.int32)], np.array([8.0]))


def test_fair_rates_of_no_flows() -> None:
    assert len(fair_rates([np.zeros(0, dtype=np.int32)], np.ones(3))) == 0


def test_phases_are_counted_apart_and_their_size_does_not_matter() -> None:
    lines = Lines(make_plan(load("ring,4"), "updown"))
    together = np.array([[0, 2], [1, 2], [3, 2]], dtype=np.int32)
    apart = [together[:1], together[1:], np.zeros((0, 2), dtype=np.int32)]
    assert contention(lines, [together]).throughput_ratio == pytest.approx(1 / 3)
    shared = contention(lines, apart)
    assert shared.max_host_load == 2
    assert shared.throughput_ratio == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert contention(lines, []).throughput_ratio == 1.0


def test_many_flows_in_one_phase_are_counted_bit_by_bit() -> None:
    lines = Lines(make_plan(load("flat,2"), "updown"))
    flows = np.tile(np.array([[0, 1]], dtype=np.int32), (300_000, 1))
    shared = contention(lines, [flows])
    assert (shared.max_host_load, shared.flows_by_load[300_000]) == (300_000, 300_000)


def test_the_command_prints_what_programs_read() -> None:
    done = run("lsft,3", "--pattern", "shift", "--json")
    shared = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (shared["engine"], shared["throughput_ratio"]) == ("lsft", 0.4342)
    assert (shared["max_channel_load"], shared["flows"]) == (4, 52 * 52)
    assert shared["channels_by_load"] == {"4": 104}
    assert shared["seconds"] > 0
    schedule = run("lsft,3", "--engine", "lsft", "--pattern", "schedule", "--json")
    assert json.loads(schedule.stdout)["throughput_ratio"] == 1.0


def test_a_ratio_is_not_rounded_to_freedom_from_contention() -> None:
    fabric = load("flat,200")
    phases = [*pattern_named("shift").phases(fabric), np.array([[0, 1], [2, 1]], dtype=np.int32)]
    shared = contention(Lines(make_plan(fabric, "updown")), phases)
    assert (round(shared.throughput_ratio, 4), rounded(shared.throughput_ratio)) == (1.0, 0.9999)
    assert (rounded(1.0), rounded(0.43424)) == (1.0, 0.4342)


def test_plot_and_file(tmp_path: Path) -> None:
    plot, file = tmp_path / "p.svg", tmp_path / "loads.json"
    options = ["--plot", str(plot), "--out", str(file)]
    done = run("torus,4,4", "--pattern", "tornado", *options)
    assert done.exit_code == 0
    assert "1 flow on the busiest channel" in done.stdout
    assert b"<svg" in plot.read_bytes()[:500]
    loads = json.loads(file.read_text())["loads"]
    assert len(loads) == 64 + 2 * 16
    assert sum(loads[name] for name in loads if ":" not in name) == 16


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ring,4", "--pattern", "tornadoo"], "did you mean 'tornado'"),
        (["ring,5", "--pattern", "bit-reversal"], "power of two"),
        (["ring,4", "--pattern", "schedule"], "needs a Latin-square fat-tree"),
        (["ring,4"], "Missing option '--pattern'"),
        (["ring,4", "--pattern", "shift:1", "--plot", "x.gif"], "must end in"),
        (["ring,4", "--pattern", "shift:1", "--out", "/nowhere/x"], "cannot be written"),
        (["ring,4", "--pattern", "shift:1", "--engine", "lsft"], "lsft needs"),
        (["lsft,6", "--pattern", "shift"], "power of a prime"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(arguments: list[str], says: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert (done.stderr.count("\n"), done.stdout) == (1, "")
