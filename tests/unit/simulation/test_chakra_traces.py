"""Execution traces in Chakra's format, simulated: times that follow from their nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.simulation import Result, Scenario, simulate
from knotless.simulation.result import by_message
from knotless.simulation.workload import ChakraTrace, CollectiveRun, GoalProgram
from knotless.topologies import load
from tests.support import REPOSITORY
from tests.support.chakra import COLLECTIVE, COMPUTE, METADATA, RECEIVE, SEND, node, write_trace

Nodes = Sequence[Sequence[dict[str, Any]]]
PLAN = make_plan(load("flat,4,rate=10000,delay=1"), "updown")


def run(workload: ChakraTrace | GoalProgram | CollectiveRun, **given: Any) -> Result:
    return simulate(Scenario(PLAN, "uniform", workload=workload, **given))


def ran(folder: Path, ranks: Nodes, **given: Any) -> Result:
    return run(ChakraTrace(write_trace(folder, ranks), **given))


def test_a_trace_equals_the_same_program_in_goal(tmp_path: Path) -> None:
    result = ran(
        tmp_path,
        [
            [
                node(1, COMPUTE, us=2),
                node(2, SEND, 1, comm_dst=1, comm_size=5000, comm_tag=7),
                node(3, RECEIVE, comm_src=2, comm_size=700),
            ],
            [
                node(1, RECEIVE, comm_src=0, comm_size=5000, comm_tag=7),
                node(2, SEND, 1, comm_dst=2, comm_size=9000),
            ],
            [
                node(9, RECEIVE, comm_src=1, comm_size=9000),
                node(11, SEND, 9, comm_dst=0, comm_size=700),
            ],
        ],
    )
    goal = run(GoalProgram(str(REPOSITORY / "experiments" / "examples" / "relay.goal")))
    assert result.result_sha256 == goal.result_sha256
    assert result.program_us == goal.program_us
    assert result.program_us is not None


@pytest.mark.parametrize("all_reduce", ["ring-allreduce", "tree-allreduce"])
def test_a_collective_equals_the_same_collective(all_reduce: str, tmp_path: Path) -> None:
    nodes = [node(5, COLLECTIVE, comm_type=0, comm_size=40_000)]
    result = ran(tmp_path, [nodes] * 4, all_reduce=all_reduce)
    alone = run(CollectiveRun(all_reduce, 40_000))
    assert result.program_us == alone.program_us
    assert [row["bytes"] for row in by_message(result)] == [
        row["bytes"] for row in by_message(alone)
    ]


def test_a_collective_starts_at_each_rank_when_its_needs_have_ended(tmp_path: Path) -> None:
    slow = [node(1, COMPUTE, us=50), node(2, COLLECTIVE, 1, comm_type=0, comm_size=8000)]
    fast = [node(7, COLLECTIVE, comm_type=0, comm_size=8000), node(8, COMPUTE, 7, us=100)]
    result = ran(tmp_path, [slow, fast])
    alone_us = run(CollectiveRun("ring-allreduce", 8000, ("h1", "h2"))).program_us
    assert alone_us is not None
    # The fast rank's first part is there already; the slow one's two parts come one by one.
    assert 150 + alone_us / 2 <= (result.program_us or 0) <= 150 + alone_us
    first = min(row["start_us"] for row in by_message(result) if row["source"] == "h1")
    assert first == 50


def test_processors_compute_one_node_after_the_other(tmp_path: Path) -> None:
    accelerator = [node(number, COMPUTE, us=10) for number in range(3)]
    host = [node(9, COMPUTE, us=25, is_cpu_op=True), node(10, METADATA, 9, 2)]
    assert ran(tmp_path, [[*accelerator, *host]]).program_us == 30
    trace = ChakraTrace(str(tmp_path))
    assert run(trace, computing=0.5).program_us == 15
    assert run(trace, computing=0).program_us == 0


def test_ranks_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    ranks = [
        [node(1, RECEIVE, comm_src=peer, comm_size=1), node(2, SEND, 1, comm_dst=peer, comm_size=1)]
        for peer in (1, 0)
    ]
    with pytest.raises(KnotlessError, match="h1 waits for a message that nobody sends"):
        ran(tmp_path, ranks)


def test_ranks_run_on_the_hosts_of_a_placement(tmp_path: Path) -> None:
    ranks = [[node(1, COLLECTIVE, comm_type=5, comm_size=100)]] * 2
    path = write_trace(tmp_path / "trace", ranks)
    (tmp_path / "hosts").write_text("h4\nh2\n")
    (row,) = by_message(run(ChakraTrace(path, str(tmp_path / "hosts"))))
    assert (row["source"], row["destination"]) == ("h4", "h2")
    (tmp_path / "hosts").write_text("h4\nh2\nh1\n")
    with pytest.raises(KnotlessError, match="3 hosts, but .*trace has 2 ranks"):
        run(ChakraTrace(path, str(tmp_path / "hosts")))


def simulated(*words: str) -> Any:
    done = CliRunner(mix_stderr=False).invoke(main, ["simulate", *words])
    return done.exit_code, done.stdout, done.stderr


def test_the_example_runs_from_the_command_line(tmp_path: Path) -> None:
    script = REPOSITORY / "experiments" / "examples" / "chakra_trace.py"
    trace = str(tmp_path / "trace")
    subprocess.run([sys.executable, str(script), trace], check=True)
    words = ("flat,4", "--chakra", trace, "--rate", "100000", "--delay", "0.5")
    status, _, told = simulated(*words)
    assert (status, told.count("\n")) == (2, 1)
    assert "step.0.et: node 1: no ranks of group '1' are known; give --chakra-groups" in told
    groups = ("--chakra-groups", f"{trace}/groups.json", "--json")
    status, out, _ = simulated(*words, *groups)
    slow = json.loads(out)
    assert status == 0
    assert slow["pattern"] == "chakra"
    # Two stages of 200 us of computing, one after the other.
    assert slow["program_us"] > 400
    _, out, _ = simulated(*words, *groups, "--computing", "0")
    # The gradients of the first stage travel while the second one computes.
    assert slow["program_us"] - 400 <= json.loads(out)["program_us"] < slow["program_us"]
    status, _, told = simulated("flat,4", "--all-reduce", "tree-allreduce", "--goal", "a")
    assert (status, told) == (2, "knotless: --all-reduce is for --chakra\n")
