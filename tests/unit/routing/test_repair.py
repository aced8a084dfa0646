"""Repairs of well-known plans: what moves, what stays, who cannot be reached."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.cli.main import main
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.routing.plan import Plan, make_plan
from knotless.routing.plan_of_parts import new_plan, path_changes
from knotless.routing.repair import Repair, repair
from knotless.routing.routes import TableRoutes
from knotless.topologies import Link, load
from knotless.topologies.failures import NO_FAILURES, Failures, host_parts
from knotless.verification.checked_plan import CheckedPlan
from tests.support.repairs import check_repair


def repaired(spec: str, engine: str, *failed: str, **choices: Any) -> Repair:
    plan = make_plan(load(spec), engine, **choices)
    return check_repair(CheckedPlan(plan), Failures.from_names(plan.fabric, failed)).repair


def same_routes(a: Plan, b: Plan) -> bool:
    pairs: list[tuple[Any, Any]] = [
        (a.routes.channels, b.routes.channels),
        (a.routes.priorities, b.routes.priorities),
        (a.routes.tree_channels, b.routes.tree_channels),
        (a.routes.tree_priorities, b.routes.tree_priorities),
        (a.pair_vlans, b.pair_vlans),
    ]
    return all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("spec", ["mesh,4,4", "torus,4,4,hosts=4", "mesh,5,3", "torus,5,5"])
def test_dimension_order_goes_round_a_missing_link(spec: str) -> None:
    repaired_plan = repaired(spec, "dor", "s1-s2")
    assert repaired_plan.kind == "repaired"
    assert repaired_plan.moved > 0
    assert repaired_plan.max_stretch == 3.0, "s1 to s2 has three channels instead of one"
    assert isinstance(repaired_plan.plan.routes, TableRoutes)


def test_a_repair_is_a_function_of_the_intact_plan_and_the_failures() -> None:
    plan = make_plan(load("torus,4,4,hosts=2"), "updown")
    one = repair(plan, Failures.from_names(plan.fabric, ["s1-s2", "s7"]))
    other = repair(plan, Failures.from_names(plan.fabric, ["s7", "s2:4-s1:3"]))
    assert same_routes(one.plan, other.plan)
    assert one.summary() == other.summary()
    with pytest.raises(ValueError, match="starts from the intact plan"):
        repair(one.plan, NO_FAILURES)


def test_without_failures_nothing_changes() -> None:
    plan = make_plan(load("torus,4,4"), "dor")
    repaired_plan = repair(plan, NO_FAILURES)
    assert (
        repaired_plan.kind,
        repaired_plan.moved,
        repaired_plan.trees,
        repaired_plan.mean_stretch,
    ) == ("none", 0, 0, 1.0)
    assert same_routes(plan, repaired_plan.plan)


def test_a_link_that_no_path_uses_moves_nothing() -> None:
    ring = load("ring,4")
    fabric = replace(ring, links=(*ring.links, Link("s1", 9, "s2", 9)))
    plan = make_plan(fabric, "updown", select="low-port")
    repaired_plan = check_repair(
        CheckedPlan(plan), Failures.from_names(fabric, ["s1:9-s2:9"])
    ).repair
    assert (repaired_plan.kind, repaired_plan.moved, repaired_plan.trees) == ("none", 0, 0)


# L-turn and LASH use one virtual channel here, with as many turns as close no cycle. So further
# paths must make room, or there is a new plan; for LASH it would need a second virtual channel.
@pytest.mark.parametrize(
    ("engine", "failed", "kind"),
    [
        ("updown", "s2-s6", "repaired"),
        ("lturn", "s2-s6", "extended"),
        ("lturn", "s2-s3", "replanned"),
        ("lash", "s6", "updown"),
    ],
)
def test_how_much_must_change(engine: str, failed: str, kind: str) -> None:
    repaired_plan = repaired("mesh,4,4", engine, failed)
    assert repaired_plan.kind == kind
    assert repaired_plan.plan.vcs == 1
    assert repaired_plan.plan.engine == engine, "what was asked for"


def test_fewer_paths_move_to_make_room_than_in_a_new_plan() -> None:
    plan = make_plan(load("mesh,4,4"), "lturn")
    failures = Failures.from_names(plan.fabric, ["s2-s6"])
    extended = repair(plan, failures)
    kind, new = new_plan(plan, failures, FlowControl.PAUSE)
    pairs, _, after = path_changes(plan, new)
    assert (extended.kind, kind) == ("extended", "replanned")
    assert 24 <= extended.moved < pairs[after > 0].sum(), "24 pairs use the link"


@pytest.mark.parametrize("engine", ["minimal", "dor"])
def test_a_plan_with_a_cycle_is_repaired_with_one(engine: str) -> None:
    plan = make_plan(load("torus,4,4,hosts=2"), engine, vcs=1, select="low-port")
    assert CheckedPlan(plan).cycle
    repaired_plan = check_repair(
        CheckedPlan(plan), Failures.from_names(plan.fabric, ["s1-s2"])
    ).repair
    assert repaired_plan.kind == "repaired"
    assert CheckedPlan(repaired_plan.plan).cycle


@pytest.mark.parametrize("engine", ["dor", "updown", "lash", "smodk"])
@pytest.mark.parametrize("tagging", ["switch", "host"])
def test_both_parts_of_a_divided_fabric_work(engine: str, tagging: str) -> None:
    spec = "mtree,4,2,hosts=2" if engine == "smodk" else "mesh,4,2,hosts=2"
    plan = make_plan(load(spec), engine, tagging=tagging, multicast={1: ["h1", "h2", "h15"]})
    cut = ["s1-s2"] if engine == "smodk" else ["s2-s3", "s6-s7"]
    failures = Failures.from_names(plan.fabric, cut)
    repaired_plan = check_repair(CheckedPlan(plan), failures).repair
    summary: dict[str, Any] = repaired_plan.summary()
    sizes = [len(names) for names in summary["separated"]]
    assert sum(sizes) == 16
    assert summary["unreachable"] == 2 * sizes[0] * sizes[1] > 0
    verdict = CheckedPlan(repaired_plan.plan).rules_verdict
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0)
    assert (verdict.multicasts_undelivered, verdict.problems) == (0, [])
    assert verdict.unreachable == summary["unreachable"]
    apart = [names[0] for names in summary["separated"]]
    with pytest.raises(PlanError, match=f"failures separate {apart[0]} from {apart[1]}"):
        repaired_plan.plan.path(*apart)


def test_the_hosts_of_a_failed_switch_are_unreachable_for_all() -> None:
    repaired_plan = repaired("torus,4,4,hosts=2", "dor", "s6")
    summary: dict[str, Any] = repaired_plan.summary()
    assert summary["unreachable"] == 2 * (2 * 30) + 2, "with the others and with each other"
    assert [len(names) for names in summary["separated"]] == [30, 1, 1]
    assert repaired_plan.kind == "repaired"


def test_undelivered_frames_are_not_taken_for_unreachable_ones() -> None:
    plan = make_plan(load("mesh,4,1"), "dor")
    failures = Failures.from_names(plan.fabric, ["s2-s3"])
    state = CheckedPlan(repair(plan, failures).plan).state
    assert state.failures == failures
    repaired_plan = repair(plan, Failures.from_names(plan.fabric, ["s1-s2", "s2-s3"])).plan
    # These routes separate h1 from h2 too, which the failures do not.
    verdict = CheckedPlan(replace(repaired_plan, failures=failures)).verdict
    assert (verdict.unreachable, verdict.undelivered) == (8, 2)
    assert verdict.problems[:2] == [
        "h2 to h1: the frame is dropped at s2",
        "h1 to h2: the frame is dropped at s1",
    ]


def test_one_spanning_tree_stays_one_spanning_tree() -> None:
    spec = "random,32,degree=4,seed=3"
    plan = make_plan(load(spec), "updown")
    channels, tree = plan.channels, plan.routes.tree_channels[0]
    leaf = next(
        switch for switch in range(31, 0, -1) if switch not in channels.tail[tree[tree >= 0]]
    )
    name = "-".join(channels.names[ends[tree[leaf]]] for ends in (channels.tail, channels.head))
    repaired_plan = repaired(spec, "updown", name)
    trees = repaired_plan.plan.routes.tree_channels
    lower = [
        frozenset(np.minimum(row[row >= 0], channels.reverse[row[row >= 0]]).tolist())
        for row in trees
    ]
    assert repaired_plan.kind == "repaired"
    assert repaired_plan.trees == 32
    assert len(set(lower)) == 1


def run(*arguments: str) -> tuple[int, str, str]:
    runner = CliRunner(mix_stderr=False)
    done = runner.invoke(main, ["plan", *arguments], prog_name="knotless")
    return done.exit_code, done.stdout, done.stderr


def test_the_command_prints_what_moved_and_who_cannot_be_reached() -> None:
    status, out, _ = run("mesh,4,1", "--engine", "dor", "--without", "s2-s3", "--json")
    plan = json.loads(out)
    assert status == 0
    assert (plan["failed"], plan["repair"], plan["moved"]) == (["s2:2-s3:3"], "repaired", 0)
    assert (plan["unreachable"], plan["separated"]) == (8, [["h1", "h2"], ["h3", "h4"]])
    assert (plan["acyclic"], plan["minimal"]) == (True, True)
    status, out, _ = run("mesh,4,1", "--engine", "dor", "--without", "s2-s3")
    assert "reach only each other: h3, h4" in out
    assert run("mesh,4,1", "--without", "s2-s4")[0::2] == (
        2,
        "knotless: mesh,4,1 has no link or switch 's2-s4'; write a link as s1:2-s2:3 or s1-s2,"
        " a switch as s5, each by itself\n",
    )
    assert "omit it" in run("mesh,4,1", "--without", "s2-s3", "--compare")[2]


def test_without_failures_the_command_prints_nothing_about_them() -> None:
    assert "repair" not in json.loads(run("ring,4", "--json")[1])


@pytest.mark.thin(10)
@pytest.mark.parametrize("engine", ["fattree", "smodk", "updown", "lash"])
@pytest.mark.seeds(12)
def test_the_first_switch_drops_what_is_for_another_part(engine: str, seed: int) -> None:
    """Fabrics that failures divide, by the rules that switches hold, in every tagging."""
    rng = random.Random(seed)  # noqa: S311
    fabric = load(rng.choice(["fattree,2,4,2", "fattree2,4", "fattree3,4", "lsft,3"]))
    cut = [link.name for link in fabric.links if rng.random() < rng.choice([0.4, 0.6])]
    failures = Failures.from_names(fabric, cut)
    part = host_parts(fabric, failures)
    choices: dict[str, Any] = {
        "tagging": rng.choice(["switch", "host"]),
        "select": rng.choice(["spread", "low-port"]),
        "protection": rng.choice(["none", "fast-failover"]),
    }
    plan = repair(make_plan(fabric, engine, **choices), failures).plan
    state = state_of_rules(fabric, CheckedPlan(plan).rules, plan.multicast, plan.host_tags())
    apart = 0
    for source, own in zip(fabric.hosts, part, strict=True):
        for target, other in zip(fabric.hosts, part, strict=True):
            trace = state.trace(source.name, target.name)
            if own == other:
                assert source == target or len(trace.delivered) == 1
            else:
                apart += 1
                assert (trace.hops, trace.delivered, trace.unsupported) == ([], [], [])
    assert apart or max(part) == 0
