"""Loads and rates of plans with multipath, against plain counting and against the simulator."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from knotless.base.errors import PlanError
from knotless.cli.main import main
from knotless.forwarding.from_plan import state_of_plan
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.traffic.contention import Lines, contention
from knotless.traffic.multipath import HashedLines, analyse_multipath, split_loads
from knotless.traffic.patterns import pattern_named
from tests.support.hashed_frames import simulated_on_paths


def planned(spec: str, engine: str = "auto", multipath: str = "ecmp") -> Plan:
    return make_plan(load(spec), engine, multipath=multipath)


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_a_seed_takes_the_channels_that_it_takes_in_the_simulator(seed: int) -> None:
    plan = make_plan(load("fattree3,4"), multipath="ecmp", hash_seed=seed)
    simulated_on_paths(plan, HashedLines(plan, seed))


def test_equal_splitting_of_all_pairs_is_what_exploration_finds() -> None:
    for spec in ("fattree3,4", "fattree,2,4,2", "irregular-a"):
        plan = planned(spec, "updown")
        lines = Lines(plan)
        (flows,) = pattern_named("uniform").phases(plan.fabric, 1)
        split = split_loads(lines, flows)["split"]
        assert split[: lines.switch_lines] == pytest.approx(state_of_plan(plan).loads)
        hosts = len(plan.fabric.hosts)
        assert split[lines.switch_lines :] == pytest.approx(np.full(2 * hosts, hosts - 1))


def test_the_mean_over_seeds_is_equal_splitting() -> None:
    plan = planned("fattree2,4")
    flows = np.array([[0, 4], [1, 8], [2, 12], [3, 5]])
    seeds = 2000
    total = np.zeros(Lines(plan).count)
    for seed in range(seeds):
        for hop in HashedLines(plan, seed).channels_of(flows):
            total += np.bincount(hop, minlength=len(total) + 1)[: len(total)]
    # Each flow is on each of four channels with probability 1/4: 5 standard errors of four flows.
    error = 5 * np.sqrt(4 * 3 / 16 / seeds)
    assert total / seeds == pytest.approx(split_loads(Lines(plan), flows)["split"], abs=error)


def test_metrics_are_those_of_the_seeds() -> None:
    plan, pattern = planned("fattree2,4,rate=100"), pattern_named("permutation")
    found = analyse_multipath(plan, pattern, seed=3, seeds=20)
    loads = [
        contention(HashedLines(plan, seed), pattern.phases(plan.fabric, 3)).max_channel_load
        for seed in range(20)
    ]
    metrics = found.metrics()
    assert metrics["hashed_max_load_worst"] == max(loads) > 1
    assert metrics["hashed_max_load_p50"] == sorted(loads)[10]
    assert float(str(metrics["split_max_load"])) <= 1
    assert metrics["split_fair_mbps"] == 100.0
    assert 0 < float(str(metrics["hashed_fair_min_mbps_worst"])) <= 100 / 2


def test_sprayed_frames_are_split_only() -> None:
    found = analyse_multipath(
        planned("fattree2,4", multipath="spray"), pattern_named("permutation"), seed=1, seeds=9
    )
    assert not [key for key in found.metrics() if key.startswith("hashed")]


def test_lines_of_a_plan_with_multipath_follow_no_flow() -> None:
    lines = Lines(planned("fattree2,4"))
    with pytest.raises(PlanError, match="depend on a seed"):
        lines.channels_of(np.array([[0, 4]]))


def test_the_command_prints_and_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "loads.json"
    words = ["analyse", "fattree2,4", "--pattern", "shift:4", "--multipath", "ecmp"]
    done = CliRunner().invoke(main, [*words, "--seeds", "5", "--json", "--out", str(file)])
    values = json.loads(done.stdout)
    assert (values["multipath"], values["seeds"], values["flows"]) == ("ecmp", 5, 16)
    assert json.loads(file.read_text())["loads"]["s1:5"] == values["split_max_load"] == 1.0
    refused = CliRunner(mix_stderr=False).invoke(main, [*words, "--plot", str(tmp_path / "a.svg")])
    assert (refused.exit_code, "--plot is for plans" in refused.stderr) == (2, True)
