"""The traffic and hops experiments, without a running fabric."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.tests.support.experiment_rows import rows_of
from knotless.cli.main import main
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan
from knotless_experiments.framework.experiment import SIMULATION, Common, ExperimentError
from knotless_experiments.framework.fabrics import FLAT, TABLE_1
from knotless_experiments.studies.hops import EXPERIMENT as HOPS
from knotless_experiments.studies.hops import presentation as hops_presentation
from knotless_experiments.studies.hops.measure import plain_rules
from knotless_experiments.studies.paths import cases as paths
from knotless_experiments.studies.traffic import EXPERIMENT as TRAFFIC
from knotless_experiments.studies.traffic import cases as traffic_cases
from knotless_experiments.studies.traffic import presentation
from knotless_experiments.studies.traffic.cases import switch_pairs


def test_each_switch_has_one_sender_and_one_receiver() -> None:
    fabric = load("irregular-a")
    switch = {host.name: host.switch for host in fabric.hosts}
    pairs = switch_pairs(fabric, "bit-reversal")
    senders, receivers = [a for a, _ in pairs], [b for _, b in pairs]
    assert len(pairs) == 12, "four of sixteen numbers are their own reversal"
    assert len({switch[a] for a in senders}) == len({switch[b] for b in receivers}) == 12
    assert not set(senders) & set(receivers)
    assert len({fabric.hosts_at[switch[a]][1].name == a for a in senders}) == 2, "ranks go round"


def test_a_switch_with_one_host_cannot_send_and_receive() -> None:
    with pytest.raises(ExperimentError, match="hosts=2"):
        switch_pairs(load("mesh,4,4"), "transpose")


def test_simulated_messages_are_the_same_in_every_repeat_and_near_theory() -> None:
    first, second = rows_of(
        TRAFFIC,
        Common(on=SIMULATION, repeats=2, duration_s=20.0),
        part="acknowledged",
        fabric=("mesh,4,4,hosts=2",),
        engine="dor",
        pattern="transpose",
        size="1792",
    )
    assert first["result_sha256"] == second["result_sha256"]
    assert (first["lost_frames"], first["deadlock"], first["valid"]) == (0, False, True)
    assert 0.8 < first["of_theory"] <= 1.02
    assert first["mean_switches"] > 3


def test_simulated_open_loop_shares_fairly() -> None:
    (row,) = rows_of(
        TRAFFIC,
        Common(on=SIMULATION, duration_s=10.0),
        part="open-loop",
        fabric=("mesh,4,2,hosts=2",),
        pattern="bit-reversal",
    )
    assert row["of_theory"] == pytest.approx(1.0, abs=0.02)
    assert row["protocol"] == "udp"


def test_the_whole_open_loop_has_the_seven_topologies_and_the_flat_one() -> None:
    campaign = TRAFFIC.prepare(Common(on=SIMULATION), {"part": "open-loop"})
    assert len(TABLE_1) == 7
    assert {case[1].partition(",rate")[0] for case in campaign.parameters["cases"]} == {
        *TABLE_1,
        FLAT,
    }


def test_gains_are_over_updown_of_the_same_case() -> None:
    row = {"part": "acknowledged", "fabric": "a", "pattern": "p", "message_bytes": 9}
    rows = [
        {**row, "routes": "updown", "mean_mbps": 2.0},
        {**row, "routes": "dl, 2 VCs", "mean_mbps": 3.0},
        {**row, "routes": "dl, 2 VCs", "fabric": "b", "mean_mbps": 9.0},
    ]
    assert presentation.gains(rows) == {("a", "dl, 2 VCs", "p", 9): 1.5}


def test_time_grows_by_each_switch_as_lines_and_delays_say() -> None:
    rows = rows_of(HOPS, Common(on=SIMULATION, quick=True))
    kinds = hops_presentation.kinds_of(rows)
    both_ways, barrier = ("both-ways", 1792), ("barrier", 0)
    assert set(kinds) == {("messages", 16), ("messages", 1792), both_ways, barrier}
    for here in kinds.values():
        each, due = (
            hops_presentation.slope(here, "p50_us"),
            hops_presentation.slope(here, "theory_us"),
        )
        assert each is not None
        assert each == pytest.approx(due, rel=0.005)
    alone = {row["switches"]: row["bandwidth_mbps"] for row in kinds["messages", 1792]}
    for row in kinds[both_ways]:
        assert row["bandwidth_mbps"] == pytest.approx(2 * alone[row["switches"]], rel=0.01)
    shown = HOPS.present(
        {"rows": rows, "parameters": HOPS.prepare(Common(), {}).parameters}, [], True
    )
    assert len(shown.plots) == 2
    assert "each additional switch adds" in shown.sentences[0]


def test_the_slope_of_one_distance_is_none() -> None:
    assert hops_presentation.slope([{"switches": 3, "p50_us": 9.0}] * 2, "p50_us") is None
    two = [{"switches": 1, "p50_us": 5.0}, {"switches": 3, "p50_us": 9.0}]
    assert hops_presentation.slope(two, "p50_us") == 2.0


def test_plain_rules_lead_every_host_to_every_other() -> None:
    fabric = load("mesh,3,hosts=2")
    rules = plain_rules(fabric)
    for target in fabric.hosts:
        for start in fabric.switches:
            switch = start.name
            for _ in fabric.switches:
                (rule,) = [r for r in rules[switch] if f"dl_dst={target.mac}," in r]
                port = int(rule.rpartition(":")[2])
                if port in fabric.hosts_at[switch]:
                    break
                switch = fabric.neighbours[switch][port][0]
            assert (switch, port) == (target.switch, target.port)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["traffic", "--part", "some"], "--part"),
        (["traffic", "--pattern", "shift"], "no fixed pairs"),
        (["traffic", "--engine", "updwn"], "did you mean"),
        (["traffic", "--engine", "dl:99"], "NAME:N"),
        (["traffic", "--engine", ""], "no routing engine"),
        (["traffic", "--select", ""], "--select"),
        (["traffic", "--select", "best"], "--select"),
        (["traffic", "--size", "7"], "--size"),
        (["traffic", "--size", "1473"], "the last of the"),
        (["traffic", "--fabric", "mesh,4,4", "--part", "acknowledged"], "hosts=2"),
        (["traffic", "--fabric", "msh,4,4"], "did you mean"),
        (["traffic", "--fabric", "mesh,3,3", "--part", "open-loop"], "power of two"),
        (["traffic", "--on", "simulation", "--protocol", "tcp"], "no TCP"),
        (["traffic", "--on", "paper"], "--on"),
        (["traffic", "--rate", "-1"], "--rate"),
        (["traffic", "--duration", "nan"], "--duration"),
        (["hops", "--switches", "9"], "--switches"),
        (["hops", "--tagging", "both"], "--tagging"),
        (["hops", "--measure", "barriers"], "--measure"),
        (["hops", "--switches", "1,,2"], "--switches"),
        (["hops", "--on", "simulation", "--tagging", "none"], "--tagging"),
        (["hops", "--size", "x"], "--size"),
        (["hops", "--delay", "0"], "--delay"),
        (["all-to-all", "--configuration", "S9"], "--configuration"),
        (["all-to-all", "--configuration", "L6"], "too large to emulate"),
        (["all-to-all", "--schedule", "any"], "--schedule"),
        (["all-to-all", "--datagrams", "0"], "--datagrams"),
        (["all", "--on", "nowhere"], "--on"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    args: list[str], says: str, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    result = CliRunner(mix_stderr=False).invoke(main, ["run", *args, "--out", str(out)])
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("part", "fabric"), [("acknowledged", "mesh,4,4,hosts=2"), ("open-loop", "mesh,4,4")]
)
def test_a_flow_of_which_nothing_arrives_makes_a_row_invalid(part: str, fabric: str) -> None:
    """The window ends before a frame has crossed the longest path."""
    (row,) = rows_of(
        TRAFFIC,
        Common(on=SIMULATION, repeats=1, duration_s=0.001),
        part=part,
        fabric=(fabric,),
        engine="dor",
        pattern="transpose",
        size="1792",
    )
    assert not row["deadlock"]
    silent = [flow for flow, mbps in zip(row["flows"], row["flows_mbps"], strict=True) if not mbps]
    assert silent
    assert row["problems"] == [
        f"{flow}: nothing arrived in 0.001 s, and no deadlock has stopped it" for flow in silent
    ]
    assert not row["valid"]


def test_open_loop_runs_the_routes_of_paper_004_unless_others_are_chosen() -> None:
    common = Common(on=SIMULATION, rate_mbps=1000.0)
    papers = [case.routed for case in paths.cases(Common(quick=True), {})]
    runs = traffic_cases.cases(common, {"part": "open-loop", "pattern": "transpose"}, 1.0)
    ours = [case.routed for case in runs if case.routed.name != FLAT]
    assert [(each.name, each.request) for each in ours] == [
        (each.name, each.request) for each in papers
    ]
    cyclic = [each.name for each in ours if not CheckedPlan(each.plan).verdict.acyclic]
    assert cyclic == ["torus,2,4,hosts=2", "torus,4,4"]
    assert [each.name for each in ours if dict(each.settings).get("allow_deadlock")] == cyclic
    chosen = {"part": "open-loop", "pattern": "transpose", "fabric": ("torus,4,4",)}
    (own,) = traffic_cases.cases(common, chosen, 1.0)
    assert CheckedPlan(own.routed.plan).verdict.acyclic
