"""The storm experiment: what stands still behind a host that pauses for ever, and what helps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from click.testing import CliRunner

from experiments.tests.support.experiment_rows import rows_of
from knotless.cli.main import main
from knotless.topologies import load
from knotless_experiments.framework.experiment import SIMULATION, Common, ExperimentError
from knotless_experiments.framework.routed import Routed
from knotless_experiments.studies.storm import EXPERIMENT, presentation
from knotless_experiments.studies.storm.cases import (
    ALL_TO_ALL,
    PERMUTATION,
    TRAFFIC,
    Case,
    Protection,
    pairs_of,
    protection_named,
)
from knotless_experiments.studies.storm.measure import Look, simulated, well_again_ms

ROUTED = Routed("torus,4,4,rate=1000,delay=1")


def run(protection: str, traffic: str = ALL_TO_ALL) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    case = Case(ROUTED, traffic, protection_named(protection))
    return simulated(case, duration_s=0.1, load=0.3, seed=1)


def test_without_protection_a_storm_stops_flows_to_all_hosts_for_ever() -> None:
    row, looks = run("none")
    # All but those of the host itself.
    assert row["flows"] == 15 * 14
    assert row["stopped_flows"] == row["flows"]
    assert row["stopped_channels"] > 15, "the lines of all other hosts, and channels between"
    assert row["well_again_ms"] is None
    assert (row["lost_frames"], row["lost_others"], row["storms"]) == (0, 0, 0)
    assert not row["deadlock"], "it would end with the pause"
    assert row["depth"] >= 3
    assert row["delivered_share"] < 0.5
    standing = [look["standing"] for look in looks]
    assert max(standing) == row["stopped_channels"]
    # Nothing that stands still moves again.
    assert all(a <= b for a, b in pairwise(standing))


def test_a_permutation_leaves_flows_alone_that_share_nothing_with_the_storm() -> None:
    row, _ = run("none", PERMUTATION)
    assert row["flows"] == 14
    assert row["stopped_flows"] < 14
    assert row["stopped_channels"] >= 1, "at least the line of the host that sends to it"


def test_watchdogs_end_a_storm_and_lose_frames() -> None:
    row, _ = run("drop:10")
    assert row["well_again_ms"] is not None
    assert row["well_again_ms"] > 10
    assert row["storms"] >= 1
    assert row["lost_frames"] > 0
    assert row["delivered_share"] > run("none")[0]["delivered_share"]


def test_watchdogs_drop_what_the_host_sends_unless_they_are_told_not_to() -> None:
    both_ways, one_way = (run(protection)[0] for protection in ("drop:10", "drop-egress:10"))
    assert both_ways["lost_frames"] > 1.5 * one_way["lost_frames"] > 0
    assert both_ways["lost_others"] == one_way["lost_others"] == 0


def test_a_limit_of_hosts_ends_a_storm_and_loses_nothing() -> None:
    row, _ = run("limit:20")
    assert 20 <= row["well_again_ms"] < 60
    assert (row["lost_frames"], row["lost_others"], row["storms"]) == (0, 0, 0)
    # Open loop: what waited is sent later.
    assert row["delivered_share"] > 0.9


def test_a_run_is_repeated_bit_for_bit_and_repeats_differ() -> None:
    case = Case(ROUTED, PERMUTATION, Protection("none"))
    first, again = (simulated(case, duration_s=0.05, load=0.2, seed=3)[0] for _ in range(2))
    assert first == again
    other = Case(ROUTED, PERMUTATION, Protection("none"), repeat=2)
    assert simulated(other, duration_s=0.05, load=0.2, seed=3)[0]["seed"] == 4


@pytest.mark.parametrize("traffic", TRAFFIC)
def test_every_host_sends_and_receives_and_never_from_itself(traffic: str) -> None:
    fabric = load("fattree3,4")
    for seed in range(20):
        pairs = pairs_of(traffic, fabric, seed)
        assert {a for a, _ in pairs} == {b for _, b in pairs} == set(range(16))
        assert all(a != b for a, b in pairs)
        assert len(set(pairs)) == len(pairs) == (240 if traffic == ALL_TO_ALL else 16)
    drawn = {tuple(pairs_of(PERMUTATION, fabric, seed)) for seed in range(20)}
    assert len(drawn) == 20


def test_the_end_of_a_storm_is_after_the_last_bad_look() -> None:
    def looks(*bad: int) -> list[Look]:
        return [Look(21_000.0 + 1000 * number, b, 0) for number, b in enumerate(bad)]

    assert well_again_ms(looks(0, 0, 0)) == 0
    assert well_again_ms(looks(0, 2, 0, 1, 0, 0)) == 5
    assert well_again_ms(looks(0, 1, 1)) is None
    assert well_again_ms([Look(21_000.0, 0, 4), Look(22_000.0, 0, 0)]) == 2


def test_the_report_says_what_was_measured() -> None:
    measured = [run("none"), run("drop:10"), run("limit:20")]
    rows = [row for row, _ in measured]
    samples = [{"row": n, **look} for n, (_, looks) in enumerate(measured) for look in looks]
    about = {"on": SIMULATION, "begins_s": 0.02, "load": 0.3}
    shown = presentation.present({"rows": rows, "parameters": about}, samples, True)
    assert "without protection: " in shown.sentences[0]
    assert f"{rows[0]['stopped_flows']} of 210 flows between other hosts" in shown.sentences[0]
    assert "they did not move again" in shown.sentences[0]
    assert "these flows lost up to " in shown.sentences[1] or not rows[1]["lost_others"]
    assert f"well again after {rows[2]['well_again_ms']:.0f} ms" in shown.sentences[2]
    assert [plot.name for plot in shown.plots] == ["storm", "channels", "pause-tree"]
    assert [len(line) for line in shown.columns.table(rows)] == [len(shown.columns.headings)] * 3


def test_a_table_of_several_seeds_has_the_least_and_the_greatest() -> None:
    row, _ = run("none")
    assert row["well_again_ms"] is None
    ended = {**row, "well_again_ms": 12.0, "stopped_flows": 0}
    shown = {
        column.name: presentation.range_of(column, [row, ended]) for column in presentation.TABLE
    }
    assert shown["well_again_ms"] == "12 ms to -"
    assert shown["stopped_flows"] == f"0 to {row['stopped_flows']} of 210"
    assert shown["fabric"] == row["fabric"]


def test_a_row_has_the_tree_of_first_pauses() -> None:
    row, _ = run("none")
    (tree,) = presentation.trees_of(row["first_pauses"])
    assert tree["congested"] == "s1:1/0"
    depth, count, level = 0, 0, tree["paused"]
    while level:
        depth, count = depth + 1, count + len(level)
        below = [child for node in level for child in node["paused"]]
        assert all(c["since_us"] >= n["since_us"] for n in level for c in n["paused"])
        level = below
    assert (depth, count) == (row["depth"], len(row["first_pauses"]))
    assert count > row["depth"] > 1


def test_the_small_set_shows_the_main_result() -> None:
    rows = rows_of(EXPERIMENT, Common(on=SIMULATION, quick=True))
    assert [row["protection"] for row in rows] == ["none", "drop:10", "limit:20"]
    assert all(row["valid"] for row in rows)
    assert [row["well_again_ms"] is None for row in rows] == [True, False, False]


def test_cases_and_mistakes() -> None:
    with pytest.raises(ExperimentError, match="'drop' is not none, drop:MS"):
        protection_named("drop")
    for text in ("none:5", "drop:0", "drop:nan", "limit:inf", "wait:5", ""):
        with pytest.raises(ExperimentError, match="--protection"):
            protection_named(text)
    assert str(protection_named("limit:2.5")) == "limit:2.5"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protection", "some"], "--protection"),
        (["--traffic", "bursts"], "--traffic"),
        (["--load", "2"], "--load"),
        (["--rate", "0"], "--rate"),
        (["--fabric", "flat,2"], "has 2 hosts"),
        (["--fabric", "hub,8", "--rate", "100"], "hub,8"),
        (["--on", "emulation"], "storm runs on simulation"),
    ],
)
def test_problems_are_reported_in_one_line(arguments: list[str], message: str) -> None:
    result = CliRunner(mix_stderr=False).invoke(main, ["run", "storm", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
