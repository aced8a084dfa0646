"""The barrier experiment in simulation: the papers' statements on algorithms and routings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from knotless._core import programs, simulator
from knotless.base.flow_control import FlowControl
from knotless.forwarding.from_plan import state_of_plan
from knotless.routing.plan import make_plan
from knotless.simulation.channels import channel_table
from knotless.simulation.dual_plane import dual_plane
from knotless.simulation.settings import Switching
from knotless.simulation.tables import tables_of
from knotless.topologies import load
from knotless_experiments.messages.logp import ALGORITHMS, PAPER_001, LogP, barrier_us
from knotless_experiments.studies.barrier import presentation
from knotless_experiments.workloads.barriers import passages
from knotless_experiments.workloads.barriers.case import members

SWITCH_OF_001 = ["--fabric", "flat,32", "--rate", "100", "--delay", "2.03"]
"""Fast Ethernet: with these delays L is the paper's 17.5 us."""


def rows(tmp_path: Path, *arguments: str) -> list[Mapping[str, Any]]:
    from knotless.cli.main import main

    out = ["--json", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, ["run", "barrier", *arguments, *out])
    assert done.exit_code == 0, done.output
    lines: list[Mapping[str, Any]] = json.loads(done.stdout.splitlines()[-1])["rows"]
    return lines


def test_the_formulas_are_the_papers() -> None:
    one_way, further = 30.0, 9.5
    assert PAPER_001.one_way_us == one_way
    single = replace(PAPER_001, interrupt_us=0.0)
    assert barrier_us("shuffle", 32, PAPER_001) == 5 * one_way
    assert barrier_us("shuffle", 33, PAPER_001) == 6 * one_way
    assert barrier_us("tree2", 32, PAPER_001) == pytest.approx(6 * one_way)
    assert barrier_us("tree3", 15, single) == pytest.approx(3 * (one_way + further) + one_way)
    assert barrier_us("tree3", 31, single) == pytest.approx(4 * (one_way + further) + one_way)
    assert barrier_us("tree3", 32, single) == pytest.approx(4 * (one_way + further) + one_way)
    assert barrier_us("tree4", 13, single) == pytest.approx(3 * one_way + 4 * further)
    assert barrier_us("concurrent", 32, single) == pytest.approx(2 * one_way + 30 * further)
    wired = LogP(send_us=1.0, latency_us=98.0, receive_us=1.0, gap_us=0.0, line_us=50.0)
    assert barrier_us("concurrent", 16, wired) == pytest.approx(200 + 14 * 50)
    assert barrier_us("concurrent", 16, wired, networks=2) == pytest.approx(200 + 14 * 25)
    assert barrier_us("unicast", 64, PAPER_001) == 12 * one_way
    assert barrier_us("tree3", 1, PAPER_001) == 0.0


def test_four_ways_beat_shuffle_when_receiving_is_cheap() -> None:
    """Exactly when 3 o_r < o_s + L (section 5.1.2), where the tree has two complete phases."""
    for receive_us in (1.0, 6.8, 6.9, 20.0):
        logp = LogP(send_us=3.0, latency_us=17.5, receive_us=receive_us, gap_us=0.0)
        better = barrier_us("tree4", 13, logp) < barrier_us("shuffle", 13, logp)
        assert better == (3 * receive_us < 3.0 + 17.5)


def test_algorithms_on_the_papers_switch(tmp_path: Path) -> None:
    lines = rows(tmp_path, *SWITCH_OF_001, "--barriers", "20")
    assert [row["algorithm"] for row in lines] == list(ALGORITHMS)
    mean = {row["algorithm"]: row["mean_us"] for row in lines}
    # Measured there: 174 us, 200 us (31 hosts), 204 us, 309 us.
    assert mean["shuffle"] < mean["tree3"] < mean["tree2"] < mean["concurrent"]
    for row in lines:
        assert row["one_way_us"] == pytest.approx(PAPER_001.one_way_us, abs=0.01)
        assert row["predicted_us"] == pytest.approx(
            barrier_us(row["algorithm"], 32, PAPER_001), 1e-3
        )
        assert (row["valid"], row["asked"], row["hosts"], row["networks"]) == (True, 0, 32, 1)
        assert row["min_us"] <= row["mean_us"] <= row["max_us"]


def test_logp_predicts_barriers_of_every_size_and_on_two_networks(tmp_path: Path) -> None:
    sizes = ["--hosts", "5,8,13,21,31,32", "--networks", "1,2"]
    lines = rows(tmp_path, *SWITCH_OF_001, *sizes, "--barriers", "5")
    assert len(lines) == 6 * 2 * len(ALGORITHMS)
    for row in lines:
        assert row["mean_us"] == pytest.approx(row["predicted_us"], rel=0.1), row


def test_a_second_network_costs_trees_interrupts_and_saves_the_master_of_many(
    tmp_path: Path,
) -> None:
    """Section 5.2: two networks delay the 3-way tree of 15 and speed up the concurrent of 16."""
    what = ["--algorithms", "tree3,concurrent", "--hosts", "15,16", "--networks", "1,2"]
    lines = rows(tmp_path, *SWITCH_OF_001, *what, "--barriers", "5")
    mean = {(row["algorithm"], row["hosts"], row["networks"]): row["mean_us"] for row in lines}
    # Three phases, each with one more interrupt: 10 us, as in the paper.
    assert mean["tree3", 15, 2] == pytest.approx(mean["tree3", 15, 1] + 10, abs=0.1)
    assert mean["concurrent", 16, 2] < mean["concurrent", 16, 1]


def test_algorithms_on_the_papers_repeater_hub(tmp_path: Path) -> None:
    """Measured there: 3,743 us, 728 us, 675 us (31 hosts), 1,059 us, by collisions."""
    lines = rows(tmp_path, "--fabric", "hub,32", "--rate", "100", "--barriers", "300")
    assert all(row["valid"] for row in lines)
    mean = {row["algorithm"]: row["mean_us"] for row in lines}
    assert mean["tree3"] < mean["tree2"] < mean["concurrent"] < mean["shuffle"]
    theirs = {"shuffle": 3743, "tree2": 728, "tree3": 675, "concurrent": 1059}
    for algorithm, mean_us in theirs.items():
        assert mean[algorithm] == pytest.approx(mean_us, rel=0.2)


@pytest.mark.parametrize("fabric", ["irregular-a", "irregular-b", "mesh,4,4,hosts=4"])
def test_routings_rank_as_in_the_paper(fabric: str, tmp_path: Path) -> None:
    """Table 3 of Koibuchi et al.: prefix > up*/down* > DL = structured buffer pool."""
    links = ["--rate", "6000", "--delay", "0.2", "--cut-through", "40", "--bytes", "118"]
    # RHiNET-2's hosts poll: they have no interrupts.
    costs = ["--send", "0.3", "--receive", "0.5", "--gap", "0.3", "--interrupt", "0"]
    costs += ["--computing", "1"]
    what = ["--engines", "prefix,updown,sbp,dl:2", "--algorithms", "unicast"]
    lists = ["--lists", "5", "--barriers", "5"]
    by_engine = rows(tmp_path, "--fabric", fabric, *links, *costs, *what, *lists)
    mean = {row["engine"]: row["mean_us"] for row in by_engine}
    assert all(row["valid"] and row["hosts"] == 64 for row in by_engine)
    assert mean["prefix"] > mean["updown"] > mean["dl"]
    assert mean["dl"] == pytest.approx(mean["sbp"], rel=0.005)


def test_equal_seeds_give_equal_results(tmp_path: Path) -> None:
    arguments = ("--fabric", "mesh,3,3", "--algorithms", "unicast", "--lists", "3", "--quick")
    first, second, other = (
        rows(tmp_path, *arguments, "--seed", seed)[0] for seed in ("1", "1", "2")
    )
    assert first == second
    assert first["mean_us"] != other["mean_us"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hosts", "33"], "2 to 32 hosts"),
        (["--hosts", "1"], "2 to 32 hosts"),
        (["--hosts", "x"], "not a list of numbers"),
        (["--algorithms", "tree5"], "'tree5' is none of shuffle"),
        (["--engines", "dl:x"], "such as dl:2"),
        (["--engines", "nosuch"], "nosuch"),
        (["--barriers", "0"], "0 is not at least 1"),
        (["--bytes", "4"], "4 is not at least 8"),
        (["--interrupt", "1.5"], "1.5 is not at most 1"),
        (["--duration", "3"], "a number of --barriers"),
        (["--networks", "3"], "1 network or on 2"),
        (["--rate", "0"], "--rate"),
        (["--fabric", "hub,3", "--on", "emulation"], "hub, which cannot be emulated"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    from knotless.cli.main import main

    command = ["run", "barrier", "--fabric", "flat,32", *arguments, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_hub_whose_lines_are_too_long_for_its_rate(tmp_path: Path) -> None:
    from knotless.cli.main import main

    command = ["run", "barrier", "--fabric", "hub,16,rate=100", "--delay", "3", "--quick"]
    done = CliRunner().invoke(main, [*command, "--out", str(tmp_path)])
    assert done.exit_code == 2
    last = done.output.splitlines()[-1]
    assert last.startswith("knotless: hub,16,rate=100: hub 0: signals take 12 us there and back")


def test_of_fewer_hosts_every_switch_gives_some() -> None:
    fabric = load("mesh,2,2,hosts=4")
    assert members(fabric, 4) == ["h1", "h5", "h9", "h13"]
    assert members(fabric, 6) == ["h1", "h2", "h5", "h6", "h9", "h13"]
    assert members(fabric, None) == [host.name for host in fabric.hosts]


def test_a_barrier_left_early_is_seen() -> None:
    entered = np.array([[0.0, 5.0], [20.0, 21.0], [40.0, 41.0]])
    good = passages.Passages(entered, np.array([[6.0, 7.0], [22.0, 23.0], [42.0, 43.0]]))
    bad = passages.Passages(entered, np.array([[4.0, 7.0], [22.0, 23.0], [40.5, 43.0]]))
    assert (good.left_early, bad.left_early) == (0, 2)


def test_passages_are_sorted_by_barrier_and_process() -> None:
    ranks = np.array([1, 0, 0, 1], dtype=np.uint32)
    times = np.array([1.0, 2.0, 3.0, 4.0])
    by_barrier = passages.by_process(ranks, times, times + 10, 2)
    assert by_barrier is not None
    assert by_barrier.entered_us.tolist() == [[2.0, 1.0], [3.0, 4.0]]
    assert passages.by_process(ranks[:3], times[:3], times[:3], 2) is None


def test_orders_are_random_but_known() -> None:
    order = programs.random_order(16, 3)
    assert sorted(order) == list(range(16))
    assert order[0] == 0
    with pytest.raises(ValueError, match="holds each of 0 to 1 once"):
        _traffic("unicast", [0, 0], [0, 1])
    with pytest.raises(ValueError, match="only unicast"):
        _traffic("shuffle", [0, 1], [0, 1])
    with pytest.raises(ValueError, match="no host: there are 2"):
        _traffic("shuffle", None, [0, 2])


def test_two_networks_share_what_the_master_receives(tmp_path: Path) -> None:
    what = ["--algorithms", "concurrent,shuffle", "--networks", "1,2", "--hosts", "16"]
    lines = ["--fabric", "flat,32", "--rate", "10", "--delay", "2"]
    by_network = rows(tmp_path, *lines, *what, "--barriers", "5")
    one, shuffle_one, two, shuffle_two = (row["mean_us"] for row in by_network)
    one_way_us, line_us = by_network[0]["one_way_us"], 67.2
    # The line brings a message each 67.2 us, two lines bring two.
    assert one == pytest.approx(2 * one_way_us + 14 * line_us, rel=0.01)
    assert two == pytest.approx(2 * one_way_us + 7 * line_us, rel=0.05)
    assert shuffle_two == pytest.approx(shuffle_one)
    assert [row["networks"] for row in by_network] == [1, 1, 2, 2]
    for row in by_network:
        assert row["valid"]


def test_a_dual_plane_is_two_fabrics() -> None:
    plan = make_plan(load("torus,5,5,hosts=2"), "dor")
    table = channel_table(plan.fabric, Switching(FlowControl.PFC))
    both = dual_plane(table, len(plan.fabric.switches))
    assert len(both.names) == 2 * len(table.names)
    for number, name in enumerate(both.names):
        mark = "'" if name.endswith("'") else ""
        assert both.names[both.back[number]].endswith("'") == bool(mark)
        old = table.place[name.removesuffix("'")]
        assert both.names[both.back[number]] == table.names[table.back[old]] + mark
        assert both.rate_bps[number] == table.rate_bps[old]
        side = (25 if both.leaves[number] >= 0 else -50) if mark else 0
        assert both.leaves[number] == table.leaves[old] + side
    assert (np.diff(np.where(both.leaves >= 0, both.leaves, 100 - both.leaves)) >= 0).all()
    # The same flows on both planes use the same channels, and no others.
    hosts = np.arange(50, dtype=np.uint32)
    sources, targets = np.concatenate([hosts, hosts + 50]), np.roll(hosts, 7).astype(np.int64)
    simulation = simulator.Simulation(
        50,
        100,
        both,
        tables_of(state_of_plan(plan), table).repeated(2),
        [],
        simulator.Traffic.flows(
            sources, np.concatenate([targets, targets + 50]), "acknowledged", 0.0, 3, 1000
        ),
        seed=1,
        warm_up_ps=0,
        end_ps=2**64 - 1,
        packet_bytes=1500,
        header_bytes=0,
        link_changes=[],
    )
    while simulation.run(1 << 16):
        pass
    report = simulation.report()
    assert report.flow_packets.tolist() == [3] * 100
    frames = dict(zip(both.names, report.channel_tx_frames.tolist(), strict=True))
    assert all(frames[name] == frames[f"{name}'"] for name in table.names)
    assert sum(frames[name] for name in table.names) > 2 * 3 * 50


def _traffic(algorithm: str, order: list[int] | None, places: list[int]) -> None:
    costs = {"send_ps": 1, "receive_ps": 1, "gap_ps": 1, "interrupt_ps": 0, "computing_ps": 0}
    timing = {"retry_ns": 1, "patience_ns": 100}
    programs.barrier_traffic(
        algorithm, order, places, 2, 1, barriers=1, message_bytes=46, **costs, **timing
    )


def test_sentences_rank_the_valid_rows() -> None:
    row = {"fabric": "flat,4", "hosts": 4, "engine": "updown", "vcs": 1, "predicted_us": 10.0}
    row["networks"] = 1
    examples = [
        {**row, "algorithm": "shuffle", "mean_us": 9.0, "valid": True},
        {**row, "algorithm": "tree2", "mean_us": 12.5, "valid": True},
        {**row, "algorithm": "tree3", "mean_us": math.inf, "valid": False},
    ]
    assert presentation.sentences(examples) == [
        "flat,4, 4 hosts, by algorithm (us): shuffle 9.0 < tree2 12.5.",
        "Farthest from its formula: tree2 on flat,4, +25.0 %.",
        "Not valid (see remarks): 1 of 3 runs.",
    ]


def test_logp_in_simulation_finds_the_papers_l(tmp_path: Path) -> None:
    from knotless.cli.main import main

    arguments = ["run", "logp", *SWITCH_OF_001, "--pairs", "3", "--json", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    pairs = json.loads(done.stdout.splitlines()[-1])["rows"]
    assert len(pairs) == 3
    for row in pairs:
        assert row["latency_us"] == pytest.approx(PAPER_001.latency_us, abs=0.01)
        assert row["predicted_us"]["shuffle"] == pytest.approx(150.0, abs=0.1)
        assert (row["switches"], row["valid"]) == (1, True)


def test_what_two_processes_measure_becomes_logp() -> None:
    from knotless_experiments.workloads.barriers.emulated import logp_of

    told = {"round_trip_ns": [60_000, 60_000], "send_ns": [3000], "receive_ns": [9500]}
    measured = replace(PAPER_001, interrupt_us=0.0, line_us=9.0)
    assert logp_of({**told, "gap_ns": [9000]}) == measured
    # Overheads that were measured on a cold processor may be more than half a warm round trip.
    assert logp_of({**told, "gap_ns": [1], "send_ns": [40_000]}).latency_us == 0.0
