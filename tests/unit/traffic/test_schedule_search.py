"""Schedules for some hosts, for fabrics with failed links, and for any fabric."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from knotless.base.errors import FabricError
from knotless.cli.main import main
from knotless.routing.engine import default_engine
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.failures import without_links
from knotless.traffic.contention import Lines, contention
from knotless.traffic.schedules.schedule import Schedule
from knotless.traffic.schedules.search import (
    SearchResult,
    find_schedule,
    initial_schedules,
    some_hosts,
)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotless.traffic.schedules.search._STEPS", 300)


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, ["schedule", *arguments])


def searched(
    spec: str, hosts: list[int] | None = None, seed: int = 1
) -> tuple[Lines, SearchResult]:
    fabric = load(spec)
    lines = Lines(make_plan(fabric, default_engine(fabric)))
    chosen = np.arange(len(fabric.hosts)) if hosts is None else np.array(hosts)
    return lines, find_schedule(lines, chosen.astype(np.int32), [], seed)


def is_all_to_all(phases: Any, count: int) -> bool:
    square = np.array(phases)
    every = np.arange(count)
    return square.shape == (count, count) and all(
        np.array_equal(np.sort(line), every) for line in (*square, *square.T)
    )


@pytest.mark.parametrize("spec", ["ring,5", "lsft,2,hosts=1", "mesh,3,3"])
def test_the_search_finds_schedules_without_contention(spec: str) -> None:
    lines, result = searched(spec)
    assert result.contention.throughput_ratio == result.ratio_bound == 1.0
    assert is_all_to_all(list(result.schedule.phases()), len(lines.plan.fabric.hosts))
    assert contention(lines, result.schedule.flows()).max_channel_load == 1


def test_any_hosts_of_a_latin_square_fat_tree() -> None:
    hosts = np.sort(np.random.default_rng(5).permutation(21)[:11]).tolist()
    lines, result = searched("lsft,2", hosts)
    shift = next(initial_schedules(lines, result.schedule.hosts))
    assert contention(lines, shift.flows()).throughput_ratio < 0.95
    assert result.contention.throughput_ratio == 1.0


def test_where_contention_must_be_it_is_less_than_initially_and_within_the_bound() -> None:
    lines, result = searched("mtree,3,3")
    hosts = result.schedule.hosts
    begun = [contention(lines, b.flows()).throughput_ratio for b in initial_schedules(lines, hosts)]
    assert max(begun) < result.contention.throughput_ratio <= result.ratio_bound < 1.0
    assert is_all_to_all(list(result.schedule.phases()), 9)


def test_a_seed_gives_one_schedule() -> None:
    def phases(seed: int) -> list[list[int]]:
        return [phase.tolist() for phase in searched("mtree,3,3", seed=seed)[1].schedule.phases()]

    assert phases(3) == phases(3)


@pytest.mark.parametrize("spec", ["torus,4,4", "flat,6", "lsft,2"])
def test_every_beginning_sends_all_to_all(spec: str) -> None:
    fabric = load(spec)
    lines = Lines(make_plan(fabric, default_engine(fabric)))
    hosts = np.flip(np.arange(len(fabric.hosts), dtype=np.int32))
    for begun in initial_schedules(lines, hosts):
        assert is_all_to_all(list(begun.phases()), len(hosts))


def test_a_count_of_hosts_is_spread_over_the_switches() -> None:
    fabric = load("mesh,2,2,hosts=3")
    assert some_hosts(fabric, 4).tolist() == [0, 3, 6, 9]
    assert some_hosts(fabric, 6).tolist() == [0, 1, 3, 4, 6, 9]


def test_as_many_hosts_as_leaves_never_meet_on_a_latin_square_fat_tree() -> None:
    printed = json.loads(run("lsft,3", "--hosts", "13", "--json").stdout)
    assert (printed["kind"], printed["throughput_ratio"]) == ("shift", 1.0)
    assert is_all_to_all(printed["phases"], 13)


def test_hosts_by_name_keep_their_order() -> None:
    printed = json.loads(run("torus,4,4", "--hosts", "h7,h1,h12", "--json").stdout)
    assert printed["hosts"] == ["h7", "h1", "h12"]
    assert printed["ratio_bound"] == 1.0
    assert is_all_to_all(printed["phases"], 3)


def test_a_failed_link_is_avoided_and_the_ratio_reported() -> None:
    printed = json.loads(run("lsft,2", "--without", "s1:4-s8:1", "--json").stdout)
    assert printed["engine"] == "updown"
    assert is_all_to_all(printed["phases"], 21)
    fabric = without_links(load("lsft,2"), ["s1:4-s8:1"])
    phases = [np.array(phase, dtype=np.int32) for phase in printed["phases"]]
    schedule = Schedule("printed", np.arange(21, dtype=np.int32), lambda: iter(phases))
    result = contention(Lines(make_plan(fabric, "updown")), schedule.flows())
    assert result.throughput_ratio == printed["throughput_ratio"] <= printed["ratio_bound"]
    shift = json.loads(run("lsft,2", "--shift", "--json").stdout)
    assert printed["throughput_ratio"] > shift["throughput_ratio"]


def test_links_by_their_switches_are_all_that_join_them() -> None:
    fabric = load("mesh,3,2")
    link = fabric.links[-1]
    by_ports = f"{link.b}:{link.b_port}-{link.a}:{link.a_port}"
    assert len(without_links(fabric, ["s2-s1", by_ports]).links) == len(fabric.links) - 2
    with pytest.raises(FabricError, match="s6 cannot be reached"):
        without_links(fabric, ["s5-s6", "s3-s6"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ring,4", "--hosts", "0"], "must be 1 to 4"),
        (["ring,4", "--hosts", "5"], "must be 1 to 4"),
        (["ring,4", "--hosts", "h1,h9"], "has no host 'h9'"),
        (["ring,4", "--hosts", "h1,h1"], "names h1 twice"),
        (["ring,4", "--hosts", ""], "has no host ''"),
        (["ring,4", "--without", "s1-s3"], "has no link or switch 's1-s3'"),
        (["ring,4", "--without", "s1-s2", "--without", "s1-s4"], "cannot be reached"),
        (["lsft,2", "--lattice", "2,1", "--hosts", "3"], "exclude --hosts"),
        (["ring,4", "--shift", "--without", "s1-s2"], "exclude --hosts"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(arguments: list[str], says: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert (done.stderr.count("\n"), done.stdout) == (1, "")
