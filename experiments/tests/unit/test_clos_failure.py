"""The clos-failure experiment: bounces close a cycle, and a priority of their own opens it."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.tests.support.experiment_rows import rows_of
from knotless.cli.main import main
from knotless.routing.graphs.task import Task
from knotless.routing.graphs.tree_levels import levels
from knotless.routing.plan import Plan, make_plan
from knotless.routing.repair import failed_channels, repair
from knotless.topologies import load
from knotless.topologies.failures import Failures
from knotless.verification.check import verdict_of
from knotless_experiments.framework.cycles import from_first
from knotless_experiments.framework.experiment import SIMULATION, Common
from knotless_experiments.studies.clos_failure import EXPERIMENT, presentation
from knotless_experiments.studies.clos_failure.bounces import (
    BOUNCED,
    REPAIRED,
    ROUTES,
    TAGGED,
    bounced_plan,
)
from knotless_experiments.studies.clos_failure.cases import FABRIC, REQUEST, WITHOUT, Case
from knotless_experiments.studies.clos_failure.measure import simulated

ONE, TWO = WITHOUT
SPEC = f"{FABRIC},rate=10000,delay=1"
SEEDS = 20


def case(routes: str, without: str = TWO, traffic: str = "3-permutations") -> Case:
    return Case(SPEC, without, routes, traffic)


@cache
def run(routes: str, without: str = TWO) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return simulated(case(routes, without), duration_s=0.002, seeds=SEEDS, seed=1)


@pytest.mark.parametrize("without", WITHOUT)
@pytest.mark.parametrize("routes", ROUTES)
def test_the_check_finds_a_cycle_where_bounces_share_a_priority(routes: str, without: str) -> None:
    verdict = verdict_of(case(routes, without).state, "pfc")
    assert verdict.failed == 0
    assert verdict.unreachable == 0
    assert verdict.acyclic == ((routes, without) != (BOUNCED, TWO))
    assert case(routes, without).plan.vcs == (2 if routes == TAGGED else 1)


def test_what_can_deadlock_freezes_as_predicted_and_nothing_else_does() -> None:
    cyclic, runs = run(BOUNCED)
    assert cyclic["frozen"] > 0
    assert cyclic["as_predicted"] == cyclic["frozen"] == sum(cyclic["knots"].values())
    assert cyclic["frozen_after_us"] < 2000
    for one in runs:
        assert one["deadlock"] == bool(one["cycle"])
        assert case(BOUNCED).as_predicted(one["cycle"].split())
    for routes, without in ((REPAIRED, TWO), (TAGGED, TWO), (BOUNCED, ONE)):
        row, _ = run(routes, without)
        assert (row["frozen"], row["knots"], row["predicted_cycle"]) == (0, {}, [])
        assert row["delivered_frames"] > cyclic["delivered_frames"]
    assert all(run(routes)[0]["lost_frames"] == 0 for routes in ROUTES)
    assert not case(BOUNCED).as_predicted(["s1:1/0", "s2:1/0"])


def paths_of(plan: Plan) -> dict[tuple[int, int], list[tuple[int, int]]]:
    receivers = np.flatnonzero(plan.receivers).tolist()
    return {
        (row, to): plan.routes.path(row, to) for row in range(len(plan.vlans)) for to in receivers
    }


@pytest.mark.parametrize(
    ("spec", "without"),
    [
        (FABRIC, "s9-s3,s10-s4"),
        ("fattree3,4", "s9-s1"),
        ("fattree2,4", "s5-s1,s6-s2,s7-s3"),
        ("fattree3,4", "s17-s9,s9-s1"),
    ],
)
def test_only_paths_of_failed_links_change_and_priorities_count_bounces(
    spec: str, without: str
) -> None:
    fabric = load(spec)
    intact = make_plan(fabric, REQUEST)
    failures = Failures.from_names(fabric, without.split(","))
    repaired = repair(intact, failures).plan
    plan = bounced_plan(intact, repaired, tagged=True)
    level = levels(Task(fabric, intact.channels, None, "spread", None))
    failed = set(np.flatnonzero(failed_channels(intact, failures)).tolist())
    own, old = paths_of(plan), paths_of(repaired)
    tail, head = intact.channels.tail, intact.channels.head
    bounces = 0
    for pair, before in paths_of(intact).items():
        path = [channel for channel, _ in own[pair]]
        assert not failed & set(path)
        switches = [*(int(tail[c]) for c in path), *(int(head[c]) for c in path[-1:])]
        assert len(set(switches)) == len(switches), "no switch twice"
        if not failed & {channel for channel, _ in before}:
            assert own[pair] == before
        if own[pair] in (before, old[pair]):
            continue
        rises = [level[head[c]] > level[tail[c]] for c in path]
        turns = [rises[n] and not rises[n - 1] for n in range(1, len(path))]
        assert [p for _, p in own[pair]] == [0, *np.cumsum(turns).tolist()]
        bounces += sum(turns)
    assert bounces > 0
    assert verdict_of(Case(spec, without, TAGGED).state, "pfc").ok


def test_seeds_are_repeated_bit_for_bit() -> None:
    short: dict[str, Any] = {"duration_s": 0.0005, "seeds": 2}
    runs = [simulated(case(BOUNCED), seed=seed, **short)[1] for seed in (5, 5, 6)]
    assert runs[0] == runs[1]
    assert [one["seed"] for one in runs[0]] == [5, 6]
    assert runs[0][1] == runs[2][0]


def test_seeds_draw_flows_of_permutations() -> None:
    for traffic, most in (("permutation", 1), ("3-permutations", 3)):
        drawn = [case(REPAIRED, traffic=traffic).pattern(seed) for seed in range(1, 9)]
        flows = [each.flows(load(FABRIC)) for each in drawn]
        assert len({tuple(each) for each in flows}) == 8
        for each in flows:
            for ends in zip(*each, strict=True):
                counts = Counter(ends)
                assert max(counts.values()) <= most
            assert 14 * most - 8 < len(each) <= 16 * most


def test_a_cycle_begins_at_its_first_channel_by_name() -> None:
    assert from_first(["b", "c", "a"]) == ["a", "b", "c"]
    assert from_first([]) == []


def test_the_report_counts_seeds() -> None:
    rows = [run(BOUNCED)[0], run(TAGGED)[0]]
    samples = [one for routes in (BOUNCED, TAGGED) for one in run(routes)[1]]
    about = {"on": SIMULATION, "duration_s": 0.002}
    shown = presentation.present({"rows": rows, "parameters": about}, samples, True)
    frozen = rows[0]["frozen"]
    assert f"{frozen} of {SEEDS} seeds ({frozen / SEEDS:.1%}) froze" in shown.sentences[0]
    assert f"the check finds no cycle; none of {SEEDS} seeds froze." in shown.sentences[1]
    assert shown.sentences[2].endswith(f"behind {SEEDS} runs: none of them froze.")
    assert [plot.name for plot in shown.plots] == ["frozen", "time-to-deadlock"]
    (line,) = shown.plots[1].figure.axes[0].lines
    shares = np.asarray(line.get_ydata()).tolist()
    assert shares == [100 * (place + 1) / SEEDS for place in range(frozen)]
    alone = presentation.present({"rows": rows[1:], "parameters": about}, samples, True)
    assert [plot.name for plot in alone.plots] == ["frozen"]
    worse = [{**rows[1], "frozen": 1, "as_predicted": 0, "knots": {"a": 1}, "frozen_after_us": 1.0}]
    again = presentation.present({"rows": worse, "parameters": about}, [], False)
    assert "of which 0 runs' are the check's" in again.sentences[0]
    assert "1 of them FROZE" in again.sentences[1]


def test_the_small_set_has_all_cases() -> None:
    rows = rows_of(EXPERIMENT, Common(on=SIMULATION, quick=True, duration_s=0.0002), seeds=1)
    assert [(row["without"], row["routes"]) for row in rows] == [
        (links, routes) for links in WITHOUT for routes in ROUTES for _ in range(2)
    ]
    assert all(row["valid"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--routes", "best"], "--routes"),
        (["--traffic", "bursts"], "--traffic"),
        (["--fabric", "fattree2,4"], "--without"),
        (["--without", "s1-s2"], "s1-s2"),
        (["--without", "s9-s3,s10-s3"], "some hosts are not connected"),
        (["--fabric", "torus,4,4", "--without", "s1-s2"], "fattree needs a path up"),
        (["--rate", "0"], "--rate"),
        (["--seeds", "0"], "--seeds"),
    ],
)
def test_problems_are_reported_in_one_line(arguments: list[str], message: str) -> None:
    result = CliRunner(mix_stderr=False).invoke(main, ["run", "clos-failure", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
