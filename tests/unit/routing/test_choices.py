"""Kinds of choice: those of the option, and one that an engine brings from outside."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, get_args

import numpy as np
import pytest

from knotless.base.errors import PlanError
from knotless.forwarding.from_plan import state_of_plan
from knotless.routing import engine as registry
from knotless.routing.choices.choice import Binding, Choice, ChosenRoutes
from knotless.routing.choices.next_hops import NextHopChoice
from knotless.routing.choices.requested import KINDS
from knotless.routing.engine import Engine, add_engine, engine_named, next_hops_of
from knotless.routing.graphs.task import Task
from knotless.routing.plan import Plan, make_plan, refuse_unruly
from knotless.routing.plan_json import plan_to_json
from knotless.routing.request import Multipath
from knotless.routing.routes import Routes
from knotless.simulation import Load, Scenario, simulate
from knotless.topologies import load
from knotless.traffic.multipath import HashedLines, analyse_multipath
from knotless.traffic.patterns import pattern_named
from knotless.verification.checked_plan import CheckedPlan


def test_each_value_of_the_option_has_a_kind_of_this_name() -> None:
    assert tuple(KINDS) == get_args(Multipath)
    assert all(kind.name == name for name, kind in KINDS.items())


@pytest.mark.parametrize(
    ("spec", "options", "binding", "has_rules"),
    [
        ("torus,4,4", {}, Binding.NONE, True),
        ("fattree2,4", {"multipath": "ecmp"}, Binding.HASH, True),
        ("fattree2,4", {"multipath": "spray"}, Binding.ANY, False),
        ("fattree2,4", {"multipath": "layers", "request": "updown"}, Binding.HASH, False),
        ("torus,4,4", {"request": "adaptive"}, Binding.FIRST_FREE, False),
        ("fullmesh,5", {"request": "ugal"}, Binding.QUEUES, False),
    ],
)
def test_a_kind_says_what_switches_must_do(
    spec: str, options: dict[str, str], binding: Binding, has_rules: bool
) -> None:
    plan = make_plan(load(spec), **{"request": "auto", **options})
    assert plan.choice.binding is binding
    assert plan.has_choices == (binding is not Binding.NONE)
    assert plan.choice.has_rules is has_rules
    if has_rules:
        refuse_unruly(plan)
        assert CheckedPlan(plan).rules_verdict.ok
    else:
        with pytest.raises(PlanError):
            refuse_unruly(plan)


class OddFrames(NextHopChoice):
    """A kind of choice that the package does not know: it sprays, and is not repaired."""

    name: ClassVar[str] = "odd"
    binding: ClassVar[Binding] = Binding.ANY
    no_rules: ClassVar[str] = "no rule is odd"
    is_repairable: ClassVar[bool] = False


def odd_plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    def route(task: Task) -> Routes:
        single = engine_named("fattree").route(task).written_out()
        none = single.channels[:, :, :0], single.priorities[:, :, :0]
        choice = OddFrames(next_hops_of(engine_named("fattree"), task))
        trees = single.tree_channels, single.tree_priorities
        return ChosenRoutes(single.rows, *none, *trees, choice)

    monkeypatch.setattr(registry, "_ADDED", {})
    add_engine(Engine("odd-engine", "odd", route, is_adaptive=True))
    return make_plan(load("fattree2,4"), "odd-engine")


def test_a_kind_from_outside_is_judged_analysed_simulated_and_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = odd_plan(monkeypatch)
    spray = make_plan(load("fattree2,4"), "fattree", multipath="spray")
    assert state_of_plan(plan).difference(state_of_plan(spray)) == ""
    assert plan_to_json(plan, {}) == plan_to_json(spray, {})
    summary = CheckedPlan(plan).summary()
    assert (summary["multipath"], summary["max_next_hops"], summary["safe"]) == ("odd", 4, True)
    assert "rules" not in summary
    pattern = pattern_named("permutation")
    ours, theirs = (analyse_multipath(one, pattern, 1, 1).metrics() for one in (plan, spray))
    assert ours == theirs
    traffic = Load("acknowledged", message_bytes=1500)
    results = [simulate(Scenario(one, "permutation", traffic)) for one in (plan, spray)]
    assert results[0].summary()["order"] == "not kept"
    ours_sent, theirs_sent = (result.report.channel_tx_frames for result in results)
    assert np.array_equal(ours_sent, theirs_sent)
    with pytest.raises(PlanError, match="^no rule is odd$"):
        refuse_unruly(plan)


def test_what_has_no_hash_or_no_choice_is_refused() -> None:
    pattern = pattern_named("permutation")
    single, ugal = make_plan(load("torus,4,4")), make_plan(load("fullmesh,5"), "ugal")
    with pytest.raises(PlanError, match="one path for each pair"):
        analyse_multipath(single, pattern, 1, 1)
    with pytest.raises(PlanError, match="multipath ugal: no hash chooses"):
        HashedLines(ugal, 0).channels_of(np.array([[0, 1]], dtype=np.int32))
    assert not any(
        name.startswith("hashed") for name in analyse_multipath(ugal, pattern, 1, 1).metrics()
    )


def test_only_next_hops_can_be_replaced_by_others() -> None:
    choices: list[Choice] = [
        make_plan(load(spec), engine, multipath=multipath).choice
        for spec, engine, multipath in (
            ("torus,4,4", "auto", "none"),
            ("fullmesh,5", "ugal", "none"),
            ("torus,4,4", "updown", "layers"),
        )
    ]
    ecmp = make_plan(load("fattree2,4"), multipath="ecmp").choice
    assert ecmp.next_hops is not None
    fewer = replace(ecmp.next_hops, channels=ecmp.next_hops.channels[::-1])
    assert ecmp.with_next_hops(fewer).next_hops is fewer
    assert ecmp.with_next_hops(fewer).name == "ecmp"
    for choice in choices:
        assert choice.next_hops is None
        with pytest.raises(ValueError, match="no sets of next hops"):
            choice.with_next_hops(fewer)
