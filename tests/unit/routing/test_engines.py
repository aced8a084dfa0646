"""The guarantees of the engines and the figures of the papers, checked independently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import PlanError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import write_dir
from knotless.routing.plan import Hop, make_plan
from knotless.topologies import load
from knotless.verification.check import check
from knotless.verification.checked_plan import CheckedPlan
from tests.support.reference_rules import RuleReference

LOW: dict[str, Any] = {"vcs": 1, "select": "low-port"}

# fabric, engine, options, mean and most switches, load, cyclic: Table 1 of Otsuka et al.,
# the values by the definitions where the table disagrees with them.
TABLE_1 = [
    ("mesh,4,2,hosts=2", "dor", {}, 2.75, 5, 32, False),
    ("torus,4,2,hosts=2", "dor", LOW, 2.5, 4, 24, True),
    ("mtree,4,4", "updown", {}, 4.8125, 10, 64, False),
    ("mesh,4,4", "dor", {}, 3.5, 7, 16, False),
    ("torus,4,4", "dor", LOW, 3.0, 5, 12, True),
    ("torus,4,4", "dor", {"vcs": 2, "select": "low-port"}, 3.0, 5, 12, False),
    ("torus,4,4", "dor", {}, 3.0, 5, 8, False),
    ("torus,4,4", "dor", {"vcs": 1}, 3.0, 5, 8, False),
    ("ring,4", "minimal", LOW, 2.0, 3, 3, True),
    ("ring,5,hosts=2", "dor", {"vcs": 1}, 2.2, 3, 12, True),
    ("flat,4", "updown", {}, 1.0, 1, 0, False),
    ("fattree,2,4,2", "fattree", {}, 3.75, 5, 16, False),
    ("lsft,2", "lsft", {}, 19 / 7, 3, 18, False),
    ("mesh,4,4", "prefix", {}, 4.15625, 10, 55, False),
    ("mesh,4,4", "lturn", {}, 3.5, 7, 16, False),
    ("mesh,4,4", "rturn", {}, 3.5, 7, 16, False),
    ("mesh,4,4", "lash", {}, 3.5, 7, 16, False),
    ("torus,4,4", "dfsssp", {}, 3.0, 5, 10, False),
    ("ring,5,hosts=2", "dl", {}, 2.2, 3, 12, False),
    ("ring,5,hosts=2", "sbp", {}, 2.2, 3, 12, False),
    ("ring,5,hosts=2", "sbp-reduced", {}, 2.2, 3, 12, False),
]


@pytest.mark.parametrize(("spec", "engine", "options", "mean", "most", "load_", "cyclic"), TABLE_1)
def test_figures(
    spec: str,
    engine: str,
    options: dict[str, Any],
    mean: float,
    most: int,
    load_: int,
    cyclic: bool,
    tmp_path: Path,
) -> None:
    fabric = load(spec)
    plan = make_plan(fabric, engine, **options)
    rules = compile_rules(plan)
    write_dir(fabric, rules, tmp_path)
    reference = RuleReference(tmp_path)
    assert reference.all_pairs() == (mean, most, load_)
    reference.broadcasts()
    assert reference.has_cycle() == cyclic
    verdict = check(fabric, rules)
    assert (verdict.mean_switches, verdict.max_switches) == (mean, most)
    assert (verdict.max_channel_load, verdict.acyclic) == (load_, not cyclic)
    assert (verdict.undelivered, verdict.broadcasts_undelivered, verdict.problems) == (0, 0, [])
    summary = CheckedPlan(plan).summary()
    assert summary["mean_switches"] == mean
    assert (summary["max_switches"], summary["max_channel_load"]) == (most, load_)
    assert summary["cycle"] == verdict.cycle


@pytest.mark.parametrize("engine", ["minimal", "dor"])
def test_the_cycle_of_a_ring_is_its_positive_channels(engine: str) -> None:
    plan = make_plan(load("ring,4"), engine, vcs=1, select="low-port")
    assert CheckedPlan(plan).cycle == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert check(plan.fabric, compile_rules(plan)).cycle == CheckedPlan(plan).cycle


def test_dateline_does_not_help_against_802_3x() -> None:
    plan = make_plan(load("ring,5"), "dor")
    rules = compile_rules(plan)
    assert check(plan.fabric, rules).acyclic
    assert check(plan.fabric, rules, flow_control="pause").cycle == [
        f"s{i}:2/0" for i in range(1, 6)
    ]


def test_path_lists_ports_and_priorities() -> None:
    plan = make_plan(load("ring,5"), "dor")
    assert plan.path("h4", "h1") == [
        Hop("s4", 1, 2, 0),
        Hop("s5", 3, 2, 0),
        Hop("s1", 3, 1, 0),
    ]
    assert [hop.priority for hop in plan.path("h5", "h2")] == [0, 1, 0]
    assert plan.path("h1", "h1") == [Hop("s1", 1, 1, 0)]


@pytest.mark.parametrize("spec", ["torus,4,4", "torus,8", "torus,6,4,hosts=2", "torus,8,4,hosts=2"])
def test_spread_loads_every_channel_of_an_even_torus_alike(spec: str) -> None:
    plan = make_plan(load(spec), "dor")
    dims = plan.fabric.grid.dims if plan.fabric.grid else ()
    for d in range(len(dims)):
        ports = {2 * d + offset + len(plan.fabric.hosts_at["s1"]) for offset in (1, 2)}
        loads = {
            int(load_)
            for load_, port in zip(CheckedPlan(plan).loads, plan.channels.out_port, strict=True)
            if port in ports
        }
        assert len(loads) == 1, (d, loads)


def test_spread_gives_hosts_of_a_switch_different_paths() -> None:
    plan = make_plan(load("mesh,2,2,hosts=2"), "minimal")
    first = {tuple(h.switch for h in plan.path(source, "h7")) for source in ("h1", "h2")}
    assert len(first) == 2


def test_updown_hosts_keep_their_virtual_channel() -> None:
    plan = make_plan(load("torus,4,4,hosts=3"), "updown", vcs=2)
    for host in plan.fabric.hosts:
        used = {hop.priority for hop in plan.path(host.name, "h48")[:-1]}
        assert used <= {(host.port - 1) % 2}


def test_updown_never_goes_up_after_down() -> None:
    plan = make_plan(load("mesh,3,3"), "updown", root="s5")
    level = {"s5": 0, "s2": 1, "s4": 1, "s6": 1, "s8": 1}
    for a in plan.fabric.hosts:
        for b in plan.fabric.hosts:
            levels = [level.get(hop.switch, 2) for hop in plan.path(a.name, b.name)]
            lowest = levels.index(min(levels))
            assert levels[: lowest + 1] == sorted(levels[: lowest + 1], reverse=True)
            assert levels[lowest:] == sorted(levels[lowest:])


def test_vlans_are_few_where_next_hops_agree() -> None:
    assert CheckedPlan(make_plan(load("mesh,4,4,hosts=4"), "dor")).summary()["vlans"] == 1
    assert make_plan(load("torus,4,4,hosts=4"), "dor", select="low-port").vlan_of("h9") == 2
    assert CheckedPlan(make_plan(load("torus,4,4,hosts=4"), "dor")).summary()["vlans"] == 2


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("ring,4", {"engine": "updwn"}, "did you mean 'updown'?"),
        ("ring,4", {"engine": "?"}, "known are "),
        (
            "ring,4",
            {"engine": "dor", "vcs": 0},
            "vcs: 0 is not at least 1",
        ),
        (
            "ring,4",
            {"engine": "dor", "vcs": 9},
            "vcs: 9 is not at most 8",
        ),
        (
            "ring,4",
            {"engine": "dor", "select": "best"},
            "'best' is not one of 'spread'",
        ),
        ("ring,4", {"engine": "dor", "tagging": "both"}, "'both' is not one of 'switch', 'host'"),
        ("ring,4", {"engine": "dor", "root": "s1"}, "dor has no root"),
        ("ring,4", {"engine": "updown", "root": "s9"}, "no switch 's9'"),
        ("mtree,3,3", {"engine": "dor"}, "needs a mesh or torus"),
    ],
)
def test_choices_that_cannot_be_had(spec: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(load(spec), **options)
    assert message in str(caught.value)


def test_unknown_hosts_are_refused() -> None:
    plan = make_plan(load("ring,4"), "dor")
    with pytest.raises(PlanError, match="has no host 'h9'"):
        plan.path("h1", "h9")
