"""Workloads: flows of random sizes, incasts, programs in GOAL, and where pauses come from."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import knotless as kn
from knotless.base.errors import KnotlessError, SimulationError
from knotless.routing.plan import make_plan
from knotless.simulation import LinkChange, Load, Result, Scenario, simulate
from knotless.simulation.pause_tree import pause_tree, tree_lines
from knotless.simulation.result import by_message
from knotless.simulation.traffic import line_bytes
from knotless.simulation.workload import (
    CollectiveRun,
    Flows,
    GoalProgram,
    Incast,
    RandomFlows,
    Workload,
)
from knotless.topologies import load
from knotless.traffic.sizes import SizeDistribution, sizes_named
from tests.support import REPOSITORY

LINES = "rate=10000,delay=1"


def scenario(spec: str, workload: Workload | None, **given: Any) -> Scenario:
    return Scenario(
        make_plan(load(f"{spec},{LINES}"), "updown"), "uniform", workload=workload, **given
    )


def run(spec: str, workload: Workload, **given: Any) -> Result:
    return simulate(scenario(spec, workload, **given))


def test_random_flows_have_the_load_and_the_sizes_that_were_asked_for() -> None:
    sizes = sizes_named("hadoop")
    result = run("flat,16", Flows(RandomFlows(sizes, 0.3, 20_000)))
    rows = by_message(result)
    assert len(rows) == 20_000
    assert {row["source"] for row in rows} == {row["destination"] for row in rows}
    assert all(row["source"] != row["destination"] for row in rows)
    wire = sum(line_bytes(row["bytes"], 1500) for row in rows)
    offered = 8 * wire / (16 * 10_000 * max(row["start_us"] for row in rows))
    # The standard error of the mean of 20,000 sizes is 5 %.
    assert offered == pytest.approx(0.3, rel=0.15)
    drawn = np.array([row["bytes"] for row in rows])
    for size, probability in sizes.points:
        # The standard deviation of a share of 20,000 is 0.0035 at most.
        assert np.mean(drawn <= size) == pytest.approx(probability, abs=0.015)


def test_random_flows_repeat_with_their_seed_only() -> None:
    flows = Flows(RandomFlows(sizes_named("hadoop"), 0.5, 300))
    first, again = run("mesh,2,2,hosts=2", flows), run("mesh,2,2,hosts=2", flows)
    other = run("mesh,2,2,hosts=2", flows, seed=2)
    assert first.result_sha256 == again.result_sha256 != other.result_sha256
    assert by_message(first) == by_message(again)


def test_random_flows_begin_until_the_duration_or_follow_a_pattern() -> None:
    small = SizeDistribution("small", ((1000, 1.0),))
    base = scenario("flat,4", Flows(RandomFlows(small, 0.5)), duration_us=1000.0)
    result = simulate(base)
    starts = [row["start_us"] for row in by_message(result)]
    assert 900 < max(starts) < 1000
    # 4 hosts, 1038 bytes of 8 bits, half of 10 Gbit/s: 2408 flows, +- 49.
    assert len(starts) == pytest.approx(2408, abs=250)
    shifted = simulate(base.changed(pattern="shift:1"))
    assert {(row["source"], row["destination"]) for row in by_message(shifted)} == {
        ("h1", "h2"),
        ("h2", "h3"),
        ("h3", "h4"),
        ("h4", "h1"),
    }


def test_incasts_come_at_once_and_add_to_random_flows() -> None:
    incast = Incast(3, 30_000, "h2", every_us=100, count=4)
    rows = by_message(run("flat,6", Flows(incast=incast)))
    assert sorted(row["start_us"] for row in rows) == [t for t in (0, 100, 200, 300) for _ in "abc"]
    assert {row["destination"] for row in rows} == {"h2"}
    for at in (0, 100, 200, 300):
        assert len({row["source"] for row in rows if row["start_us"] == at}) == 3
    named = by_message(run("flat,6", Flows(incast=Incast(("h1", "h3"), 500))))
    assert {row["source"] for row in named} == {"h1", "h3"}
    assert len({row["destination"] for row in named} - {"h1", "h3"}) == 1
    small = RandomFlows(SizeDistribution("small", ((1000, 1.0),)), 0.1, 200)
    both = by_message(run("flat,6", Flows(small, incast)))
    assert len(both) == 200 + 12
    until = max(row["start_us"] for row in both if row["bytes"] == 1000)
    endless = replace(incast, count=None)
    repeated = by_message(run("flat,6", Flows(small, endless)))
    assert len(repeated) == 200 + 3 * (int(until // 100) + 1)


def test_the_load_of_incasts_is_that_of_the_receivers() -> None:
    incast = Incast(4, 100_000, load=0.2, count=500)
    rows = by_message(run("flat,10", Flows(incast=incast)))
    wire = len(rows) * line_bytes(100_000, 1500)
    got = 8 * wire / (10 * 10_000 * max(row["start_us"] for row in rows))
    assert got == pytest.approx(0.2, rel=0.2)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (Flows(RandomFlows(sizes_named("hadoop"), 1.5)), "load must be over 0 and at most 1"),
        (Flows(RandomFlows(sizes_named("hadoop"), 0.5, 0)), "flows: 0 is not in 1"),
        (Flows(incast=Incast(4, 100)), "an incast needs 1 to 3 senders on flat,4"),
        (Flows(incast=Incast(2, 0)), "incast: 0 bytes are not in 1"),
        (Flows(incast=Incast(2, 10, "h9")), "incast: rank 0: flat,4.* has no host 'h9'"),
        (Flows(incast=Incast(("h1",), 10, "h1")), "h1 would send to itself"),
        (Flows(incast=Incast(("h1", "h1"), 10)), "h1 has a rank already"),
        (Flows(incast=Incast(2, 10, every_us=1, load=0.1)), "an interval or a load, not both"),
        (Flows(incast=Incast(2, 10, every_us=0)), "an interval of 0 us is not possible"),
        (CollectiveRun("ring-allreduce", 100, ("h1", "h9")), "has no host 'h9'"),
        (CollectiveRun("ring-allreduce", 2), "needs 4 to 2\\*\\*40 - 1 bytes a host"),
        (GoalProgram("/nowhere.goal"), "/nowhere.goal: cannot be read"),
    ],
)
def test_workloads_that_are_not_possible_are_refused(workload: Workload, message: str) -> None:
    with pytest.raises(KnotlessError, match=message):
        run("flat,4", workload)


GOAL = """num_ranks 3
rank 0 {
a: calc 2000
b: send 5000b to 1
c: recv 700b from 2
b requires a
c requires b
}
rank 1 {
a: recv 5000b from 0
b: send 9000b to 2
b requires a
}
rank 2 {
a: recv 9000b from 1
b: calc 1500
c: send 700b to 0
b requires a
c requires b
}
"""
PROGRAM = """process,kind,peer,bytes,seconds
0,compute,-1,0,0.000002
0,send,1,5000,0
0,recv,2,700,0
1,recv,0,5000,0
1,send,2,9000,0
2,recv,1,9000,0
2,compute,-1,0,0.0000015
2,send,0,700,0
"""


def test_a_program_in_goal_equals_the_same_program_as_a_trace(tmp_path: Path) -> None:
    (tmp_path / "a.goal").write_text(GOAL)
    (tmp_path / "a.csv").write_text(PROGRAM)
    goal = run("mesh,3,1", GoalProgram(str(tmp_path / "a.goal")))
    trace = simulate(scenario("mesh,3,1", None).changed(trace=str(tmp_path / "a.csv")))
    assert goal.program_us is not None
    assert goal.program_us == trace.program_us
    assert goal.result_sha256 == trace.result_sha256


def test_ranks_run_where_they_are_placed(tmp_path: Path) -> None:
    goal, placement = tmp_path / "a.goal", tmp_path / "hosts"
    goal.write_text("num_ranks 2\nrank 0 {\nsend 10b to 1\n}\nrank 1 {\nrecv 10b from 0\n}\n")
    placement.write_text("h4\nh2\n")
    rows = by_message(run("flat,4", GoalProgram(str(goal), str(placement))))
    assert [(row["source"], row["destination"]) for row in rows] == [("h4", "h2")]
    for text, message in [
        ("h4\n", "line 1: 2 ranks, but 1 hosts"),
        ("h4\nh2\nh3\n", "3 hosts, but .* has 2 ranks"),
        ("h4\nh9\n", "rank 1: .* has no host 'h9'"),
        ("h4\nh4\n", "rank 1: h4 has a rank already"),
    ]:
        placement.write_text(text)
        with pytest.raises(SimulationError, match=message):
            run("flat,4", GoalProgram(str(goal), str(placement)))


def test_an_operation_whose_frames_are_lost_does_not_end_and_says_so() -> None:
    plan = make_plan(load("hub,8"))
    result = simulate(Scenario(plan, "uniform", workload=CollectiveRun("all-to-all", 1_000_000)))
    assert result.lost_frames > 0
    assert result.summary()["collective_us"] is None


def test_programs_that_wait_for_ever_are_refused(tmp_path: Path) -> None:
    goal = tmp_path / "a.goal"
    goal.write_text(
        "num_ranks 2\n"
        "rank 0 {\na: recv 1b from 1\nb: send 1b to 1\nb requires a\n}\n"
        "rank 1 {\na: recv 1b from 0\nb: send 1b to 0\nb requires a\n}\n"
    )
    with pytest.raises(SimulationError, match="h1 waits for a message that nobody sends"):
        run("flat,2", GoalProgram(str(goal)))
    goal.write_text("num_ranks 2\nrank 0 {\nsend 5b to 2\n}\n")
    with pytest.raises(SimulationError, match="a.goal: line 3: rank 2 is not one of 0 to 1"):
        run("flat,2", GoalProgram(str(goal)))


def test_a_large_program_is_read(tmp_path: Path) -> None:
    goal, steps = tmp_path / "a.goal", 20_000
    with goal.open("w") as file:
        file.write("num_ranks 2\nrank 0 {\n")
        for step in range(steps):
            file.write(f"l{step}: send 1b to 1\n")
            if step:
                file.write(f"l{step} requires l{step - 1}\n")
        file.write("}\nrank 1 {\n" + "recv 1b from 0\n" * steps + "}\n")
    assert len(by_message(run("flat,2", GoalProgram(str(goal))))) == steps


def test_recording_completions_does_not_change_the_result() -> None:
    base = scenario("torus,3,3", None, load=Load("acknowledged", message_bytes=9000, messages=3))
    plain, recorded = simulate(base), simulate(base.changed(completions=True))
    assert plain.completions is None
    assert plain.summary()["fct_us"] is None
    assert plain.result_sha256 == recorded.result_sha256
    times = recorded.summary()["fct_us"]
    assert times["messages"] == recorded.report.completion.total
    assert times["max"] == recorded.report.completion.max_ps / 1e6
    slowdowns = recorded.summary()["slowdown"]
    assert slowdowns["mean"] >= 1


def test_messages_before_the_end_of_the_warm_up_are_not_recorded() -> None:
    flows = Flows(RandomFlows(SizeDistribution("small", ((1000, 1.0),)), 0.2))
    result = run("flat,4", flows, warm_up_us=500.0, duration_us=1000.0)
    ends = [row["start_us"] + row["fct_us"] for row in by_message(result)]
    assert 500 <= min(ends) < 520
    assert len(ends) == result.report.completion.total


def test_pauses_spread_from_the_receiver_of_an_incast() -> None:
    # Two hosts of the receiver's switch and one two switches away share its line.
    incast = Incast(("h2", "h3", "h7"), 3_000_000, "h1")
    result = run("mesh,3,1,hosts=3", Flows(incast=incast))
    trees = pause_tree(result.report, result.channels)
    assert trees[0]["congested"] == "s1:1/0"
    paused = []
    waiting = [(node, 0.0) for tree in trees for node in tree["paused"]]
    while waiting:
        node, before_us = waiting.pop()
        assert node["since_us"] > before_us
        paused.append(node["channel"])
        waiting += [(child, node["since_us"]) for child in node["paused"]]
    # Each channel that was ever paused is in one place.
    counted = np.flatnonzero(result.report.channel_pauses)
    assert sorted(paused) == sorted(f"{result.channels.names[c]}/0" for c in counted)
    depth = max(len(line) - len(line.lstrip()) for line in tree_lines(trees))
    assert depth == 6, "from the port of h1 to the link of s2, to that of s3, to h7"


def test_without_pauses_there_is_no_tree() -> None:
    result = run("flat,3", Flows(incast=Incast(("h1",), 100, "h2")))
    assert pause_tree(result.report, result.channels) == []
    assert list(tree_lines([])) == ["no channel was paused"]


def test_the_time_to_a_deadlock_is_that_of_its_last_channel() -> None:
    plan = make_plan(load(f"ring,4,{LINES}"), "dor", vcs=1, select="low-port")
    values = simulate(Scenario(plan, "shift:2").that_ends()).summary()
    assert values["deadlock"]
    assert 0 < values["time_to_deadlock_us"] == values["knot_since_us"]
    calm = simulate(Scenario(plan, "shift:1").that_ends()).summary()
    assert calm["time_to_deadlock_us"] is None


def test_links_that_fail_leave_flows_that_have_not_completed() -> None:
    flows = Flows(RandomFlows(SizeDistribution("long", ((1_000_000, 1.0),)), 0.5, 40))
    cut = (LinkChange(100.0, "s1:1", up=False),)
    result = run("flat,4", flows, link_changes=cut)
    values = result.summary()
    assert values["fct_us"]["messages"] + values["messages_under_way"] <= 40
    assert values["fct_us"]["messages"] < 40


def test_messages_of_a_host_follow_each_other_or_take_turns(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time_us,source,destination,bytes\n0,h1,h2,150000\n0,h1,h3,3000\n")
    base = scenario("flat,3", None).changed(trace=str(trace), completions=True)

    def ends(turns: bool) -> dict[str, float]:
        rows = by_message(simulate(base.changed(take_turns=turns)))
        return {row["destination"]: row["fct_us"] for row in rows}

    packet_us = 1538 * 8 / 10_000
    after_us = 2 + packet_us
    # 100 packets of the first, and 2 of the second: these last, or third and fifth, since the
    # first packet is on the line, and the next at it, when the second message is given.
    for turns, packets in ((False, (100, 102)), (True, (102, 5))):
        expected = dict(zip(("h2", "h3"), (n * packet_us + after_us for n in packets), strict=True))
        assert ends(turns) == pytest.approx(expected)


EXAMPLES = REPOSITORY / "experiments" / "examples"


def training_step(tmp_path: Path, **options: int) -> Path:
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    script = [sys.executable, str(EXAMPLES / "training_step.py"), *given]
    done = subprocess.run(script, capture_output=True, check=True)
    (tmp_path / "step.goal").write_bytes(done.stdout)
    return tmp_path / "step.goal"


@pytest.mark.parametrize(
    ("data", "pipeline", "tensor"), [(1, 1, 1), (4, 1, 1), (1, 4, 1), (1, 1, 4), (2, 2, 2)]
)
def test_a_training_step_sends_what_its_formulas_say(
    data: int, pipeline: int, tensor: int, tmp_path: Path
) -> None:
    layers, hidden, sequence, micro = 4, 64, 32, 3
    parts = {"data": data, "pipeline": pipeline, "tensor": tensor}
    sizes = {"layers": layers, "hidden": hidden, "sequence": sequence, "micro_batches": micro}
    path = training_step(tmp_path, **parts, **sizes)
    result = run("flat,8", GoalProgram(str(path)))
    activation = 2 * sequence * hidden
    # A ring all-reduce of M bytes among n ranks sends 2 (n - 1) M bytes in all.
    expected = (
        data * pipeline * 2 * 2 * (layers // pipeline) * micro * 2 * (tensor - 1) * activation
        + data * tensor * 2 * (pipeline - 1) * micro * activation
        + pipeline * tensor * 2 * (data - 1) * (24 * hidden**2 * layers // pipeline // tensor)
    )
    assert sum(row["bytes"] for row in by_message(result)) == expected
    operations = (24 * sequence * hidden**2 + 4 * sequence**2 * hidden) / tensor
    computing_us = round(operations / 1e5) * 3 * (layers // pipeline) * micro / 1e3
    # A pipeline is empty at its beginning and end.
    whole_us = computing_us * (micro + pipeline - 1) / micro
    assert result.program_us is not None
    assert result.program_us >= whole_us
    if data * pipeline * tensor == 1:
        assert result.program_us == pytest.approx(computing_us)


def test_the_example_of_a_program_runs() -> None:
    result = run("flat,3", GoalProgram(str(EXAMPLES / "relay.goal")))
    assert [row["bytes"] for row in by_message(result)] == [5000, 9000, 700]


def test_workloads_run_from_python() -> None:
    workload = CollectiveRun("ring-allreduce", 160_000)
    done = kn.simulate("fattree3,4", "uniform", rate_mbps=10000, settings={"workload": workload})
    assert done["collective_us"] >= done["collective_bound_us"] > 0
    assert "fct_us" not in kn.simulate("ring,4", "shift:1")


@given(
    st.lists(st.tuples(st.integers(0, 50), st.sets(st.integers(0, 11), max_size=3)), max_size=12)
)
def test_a_program_lasts_as_long_as_its_longest_chain(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[int, set[int]]]
) -> None:
    # Each computes on a processor of its own, after some of those before it.
    ends: list[int] = []
    lines = []
    for number, (lasts_ns, wanted) in enumerate(operations):
        before = {other for other in wanted if other < number}
        ends.append(lasts_ns + max((ends[other] for other in before), default=0))
        lines.append(f"l{number}: calc {lasts_ns} cpu {number}")
        lines += [f"l{number} requires l{other}" for other in before]
    path = tmp_path_factory.mktemp("goal") / "a.goal"
    path.write_text("\n".join(["num_ranks 1", "rank 0 {", *reversed(lines), "}"]))
    result = run("flat,2", GoalProgram(str(path)))
    assert result.program_us == max(ends, default=0) / 1000
